import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { Engine } from '../../src/engine.ts'
import { closeParents } from '../../src/lifecycle/close.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { operation } from '../../src/operation.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'

const sum = operation('sum', {
  payload: z.object({}),
  run: async () => defer([child(work, {})], { then: 'sumUp' }),
  parts: { sumUp: async () => 'summed up' },
})

const gate = new Gate()
let bed: Bed
let other: Engine
beforeAll(async () => {
  bed = await openBed({ operations: [work, sum] })
  other = await bed.open({}, { pausePoint: gate.pausePoint })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const ofSum = { operations: ['sum'] }
const ofChild = { operations: ['work'] }
const continued = async (jobId: string) =>
  (await bed.engine.events(jobId)).filter(({ event }) => event === 'job.continued').length

async function deferred(): Promise<string> {
  const jobId = await submitted(bed.engine.submit(sum, {}))
  await bed.engine.run(await claimOne(bed.engine, ofSum))
  return jobId
}

test('two that find the last child ended let the job go on once', async () => {
  const jobId = await deferred()
  const stop = gate.stopAt('close')
  const ended = other.complete(await claimOne(other, ofChild), null)
  await stop.reached
  const closing = await bed.hold((db) => closeParents(db, [jobId]))
  expect(closing.value).toEqual([jobId])
  stop.go()
  expect(await ended).toEqual({ settled: true })
  await closing.commit()
  expect(await bed.engine.sweep()).toMatchObject({ closed: [] })
  expect(await continued(jobId)).toBe(1)
  expect(await bed.engine.claim({ ...ofSum, limit: 5 })).toHaveLength(1)
})

test('a process that dies between the last child and its parent loses nothing: the sweep lets the job go on', async () => {
  const jobId = await deferred()
  const stop = gate.stopAt('close')
  const ended = other.complete(await claimOne(other, ofChild), null)
  await stop.reached
  expect((await bed.engine.get(jobId))?.status).toBe('running')
  expect(await bed.engine.sweep()).toMatchObject({ closed: [jobId] })
  expect((await bed.engine.get(jobId))?.status).toBe('pending')
  const attempt = await claimOne(bed.engine, ofSum)
  stop.go()
  await ended
  expect(await bed.engine.run(attempt)).toMatchObject({ settled: true })
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: 'summed up' })
  expect(await continued(jobId)).toBe(1)
})

test('a job that is being cancelled when its last child ends stays cancelled', async () => {
  const jobId = await deferred()
  const stop = gate.stopAt('close')
  const ended = other.complete(await claimOne(other, ofChild), null)
  await stop.reached
  const cancelling = gate.stopAt('cancel.jobs')
  const cancelled = other.cancel(jobId)
  await cancelling.reached
  stop.go()
  await ended
  cancelling.go()
  expect(await cancelled).toMatchObject({ cancelled: true })
  await bed.engine.sweep()
  expect((await bed.engine.get(jobId))?.status).toBe('cancelled')
  expect(await bed.engine.claim(ofSum)).toEqual([])
})

test('a stale attempt that defers makes no children and lets nothing go on', async () => {
  const jobId = await submitted(bed.engine.submit(sum, {}))
  const stale = await claimOne(bed.engine, ofSum)
  await bed.advance(31_000)
  await bed.engine.sweep()
  expect(await bed.engine.run(stale)).toMatchObject({ settled: false, why: 'fence_lost' })
  expect(await bed.engine.children(jobId)).toEqual([])
  expect((await claimOne(bed.engine, ofSum)).claimed.part).toBeUndefined()
})

test('a deferral without children that is reported twice has landed once', async () => {
  const jobId = await submitted(bed.engine.submit(sum, {}))
  const attempt = await claimOne(bed.engine, ofSum)
  const nothing = defer([], { then: 'sumUp' })
  expect(await bed.engine.complete(attempt, nothing)).toEqual({ settled: true })
  expect(await bed.engine.complete(attempt, nothing)).toEqual({ settled: true })
  expect(await continued(jobId)).toBe(1)
})
