import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openBed, work, type Bed } from '../../test/bed.ts'
import { msUntilDue } from './due.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const untilDue = (queues: string[], operations = ['work']) => msUntilDue(bed.database, queues, operations)

test('the next job of its queues is waited for', async () => {
  await bed.engine.submit(work, {}, { delayMs: 60_000 })
  await bed.engine.submit(work, {}, { delayMs: 30_000, queue: 'other' })
  expect(await untilDue(['default'])).toBeGreaterThan(50_000)
  expect(await untilDue(['default', 'other'])).toBeLessThanOrEqual(30_000)
})

test('jobs of other queues and operations keep nobody awake', async () => {
  await bed.engine.submit(work, {})
  expect(await untilDue(['default'])).toBeLessThanOrEqual(0)
  expect(await untilDue(['other'])).toBeUndefined()
  expect(await untilDue(['default'], ['another'])).toBeUndefined()
})
