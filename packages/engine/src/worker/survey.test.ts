import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openBed, work, type Bed } from '../../test/bed.ts'
import { survey } from './survey.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const see = (queues: string[], operations = ['work']) => survey(bed.database, queues, operations)

test('a survey names the queues with due jobs, of any priority, with and without slots', async () => {
  await bed.engine.submit(work, {}, { queue: 'plain' })
  await bed.engine.submit(work, {}, { queue: 'slotted', slotKey: 's' })
  await bed.engine.submit(work, {}, { queue: 'later', delayMs: 60_000 })
  await bed.engine.submit(work, {}, { queue: 'behind', delayMs: 60_000 })
  await bed.engine.submit(work, {}, { queue: 'behind', priority: 5 })
  const { due } = await see(['plain', 'slotted', 'later', 'behind', 'empty'])
  expect(due.sort()).toEqual(['behind', 'plain', 'slotted'])
})

test('a survey says when the next job of its queues is due', async () => {
  await bed.engine.submit(work, {}, { delayMs: 60_000 })
  await bed.engine.submit(work, {}, { delayMs: 30_000, queue: 'other' })
  expect((await see(['default'])).nextMs).toBeGreaterThan(50_000)
  expect((await see(['default', 'other'])).nextMs).toBeLessThanOrEqual(30_000)
})

test('jobs of other queues and operations keep nobody awake', async () => {
  await bed.engine.submit(work, {})
  await bed.engine.submit(work, {}, { delayMs: 1_000 })
  expect(await see(['other'])).toEqual({ due: [], nextMs: undefined, expired: false, scheduled: false })
  expect(await see(['default'], ['another'])).toEqual({ due: [], nextMs: undefined, expired: false, scheduled: false })
})

test('nothing is due while claims are drained', async () => {
  await bed.engine.submit(work, {})
  await bed.engine.setDrain('all')
  expect((await see(['default'])).due).toEqual([])
})

test('a queue with very many priorities counts as due', async () => {
  const later = Array.from({ length: 300 }, (_, priority) => ({ payload: {}, options: { priority, delayMs: 60_000 } }))
  await bed.engine.submitMany(work, later)
  expect((await see(['default'])).due).toEqual(['default'])
})

test('a survey says that a lease has passed, whoever had it and in whichever queue', async () => {
  await bed.engine.submit(work, {}, { queue: 'other' })
  await bed.engine.claim({ queue: 'other' })
  expect((await see(['default'])).expired).toBe(false)
  await bed.advance(60_000)
  expect((await see(['default'])).expired).toBe(true)
})
