import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { operation, type Run } from '../../src/operation.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

// A handler that forgot a promise goes on after that was rejected: until it ends, nobody else may have what it holds.

type Handler = (run: Run<Record<string, unknown>>) => Promise<unknown>

let handler: Handler = async () => null
const forgetful = operation('forgetful', {
  keys: 'caller',
  payload: z.looseObject({}),
  leaseMs: 1_000,
  retry: { firstDelayMs: 10 },
  run: (run) => handler(run),
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [forgetful] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

/** A worker, stopped at the end of the test. */
function start(): void {
  const controller = new AbortController()
  const worked = bed.engine.work({ concurrency: 4, pollMs: 50, sweepMs: 50, graceMs: 10, signal: controller.signal })
  stops.push(() => {
    controller.abort()
    return worked
  })
}

/** A handler that forgets a rejection and then goes on until it is let go; counts how many run at a time. */
function forgettingHandler() {
  const seen = { begun: 0, running: 0, most: 0, reasons: [] as unknown[] }
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  handler = async ({ payload, attempt, signal }) => {
    seen.begun += 1
    seen.running += 1
    seen.most = Math.max(seen.most, seen.running)
    if (payload['forgets'] === true && attempt.claimed.attempts === 1) {
      signal.addEventListener('abort', () => seen.reasons.push(attempt.abortReason))
      void Promise.reject(new RangeError('nobody waited for this'))
      await gate
    }
    seen.running -= 1
    return 'returned'
  }
  return { seen, letGo }
}

const leaseOf = async (jobId: string) => (await bed.engine.get(jobId))?.leaseUntil

test('a forgotten rejection aborts its attempt, which is settled when its handler has ended', async () => {
  const { seen, letGo } = forgettingHandler()
  const jobId = await submitted(bed.engine.submit(forgetful, { forgets: true }, { lockKey: 'l', maxAttempts: 1 }))
  start()
  try {
    await expect.poll(() => seen.reasons).toEqual(['unhandled_rejection'])
    const first = await leaseOf(jobId)
    await expect.poll(() => leaseOf(jobId), { timeout: 10_000 }).not.toBe(first) // it goes on being renewed
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', attempts: 1 })
  } finally {
    letGo()
  }
  await expect.poll(() => bed.engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'RangeError' })
  expect(seen.begun).toBe(1)
})

test('no second handler of a job or of its lock runs beside one that forgot a rejection', async () => {
  const { seen, letGo } = forgettingHandler()
  const first = await submitted(bed.engine.submit(forgetful, { forgets: true }, { lockKey: 'l' }))
  start()
  await expect.poll(() => seen.reasons).toHaveLength(1)
  const other = await submitted(bed.engine.submit(forgetful, {}))
  await expect.poll(() => bed.engine.get(other)).toMatchObject({ status: 'completed' }) // and the worker has looked again
  expect(await bed.engine.submit(forgetful, {}, { lockKey: 'l' })).toMatchObject({ submitted: false, why: 'locked' })
  expect(seen.begun).toBe(2)
  letGo()
  await expect.poll(() => bed.engine.get(first)).toMatchObject({ status: 'completed', attempts: 2 })
  expect(seen).toMatchObject({ begun: 3, most: 2 })
})

test('a slot stays busy while a handler goes on that forgot a rejection', async () => {
  const { seen, letGo } = forgettingHandler()
  await submitted(bed.engine.submit(forgetful, { forgets: true }, { slotKey: 's', maxAttempts: 1 }))
  start()
  await expect.poll(() => seen.reasons).toHaveLength(1)
  const next = await submitted(bed.engine.submit(forgetful, {}, { slotKey: 's' }))
  const other = await submitted(bed.engine.submit(forgetful, {}))
  await expect.poll(() => bed.engine.get(other)).toMatchObject({ status: 'completed' })
  expect(await bed.engine.get(next)).toMatchObject({ status: 'pending' })
  letGo()
  await expect.poll(() => bed.engine.get(next)).toMatchObject({ status: 'completed' })
})

test('a job that completed by itself stays completed when a rejection was forgotten', async () => {
  handler = async ({ attempt, signal }) => {
    await attempt.complete(async () => 'kept')
    void Promise.reject(new RangeError('nobody waited for this'))
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  }
  const jobId = await submitted(bed.engine.submit(forgetful, {}))
  start()
  await expect.poll(() => bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: 'kept', attempts: 1 })
})
