import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { operation, type Run } from '../../src/operation.ts'
import type { WorkOptions } from '../../src/worker/options.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

// Attempts whose time is over: handlers that stop when told, and handlers that do not.

type Handler = (run: Run<unknown>) => Promise<unknown>

let handler: Handler = async () => null
const timed = operation('timed', {
  keys: 'caller',
  payload: z.looseObject({}),
  leaseMs: 1_000,
  timeoutMs: 20,
  run: (run) => handler(run),
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [timed] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

/** Works until what it returns is called. */
function working(options: WorkOptions = {}): () => Promise<void> {
  const controller = new AbortController()
  const worked = bed.engine.work({ pollMs: 50, graceMs: 10, ...options, signal: controller.signal })
  return async () => {
    controller.abort()
    await worked
  }
}

const stopped = ({ signal }: Run<unknown>) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))

function deaf() {
  let end: (value: unknown) => void = () => {}
  const ended = new Promise((resolve) => {
    end = resolve
  })
  return { handler: () => ended, end }
}

const eventsOf = async (jobId: string) => (await bed.engine.events(jobId)).map(({ event }) => event)
const statusOf = async (jobId: string) => (await bed.engine.get(jobId))?.status

test('a handler that stops when told has timed out, and its job has failed for good', async () => {
  handler = stopped
  const jobId = await submitted(bed.engine.submit(timed, {}, { lockKey: 'l', slotKey: 's' }))
  const stop = working({ graceMs: 10_000 })
  await expect.poll(() => statusOf(jobId)).toBe('failed')
  await stop()
  expect(await bed.engine.get(jobId)).toMatchObject({
    errorCode: 'timed_out',
    attempts: 1,
    maxAttempts: 3,
    timeoutMs: 20,
  })
  expect(await eventsOf(jobId)).toEqual(['job.submitted', 'job.started', 'job.timed_out', 'job.failed'])
  expect(await bed.query('select from fencepost.resource_locks')).toEqual([])
  expect(await bed.query('select from fencepost.slots where held_until is not null')).toEqual([])
})

test('the signal says why', async () => {
  let reason: unknown
  handler = ({ signal }) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve((reason = signal.reason as unknown))))
  const jobId = await submitted(bed.engine.submit(timed, {}))
  const stop = working({ graceMs: 10_000 })
  await expect.poll(() => statusOf(jobId)).toBe('completed') // what it has done in its grace is done
  await stop()
  expect(reason).toBe('timed_out')
})

test('a submission’s timeout is taken instead of the operation’s', async () => {
  handler = stopped
  const jobId = await submitted(bed.engine.submit(timed, {}, { timeoutMs: 50_000 }))
  const short = await submitted(bed.engine.submit(timed, {}))
  const stop = working({ graceMs: 10_000 })
  await expect.poll(() => statusOf(short)).toBe('failed')
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', timeoutMs: 50_000 })
  await stop()
})

describe('a handler that does not stop', () => {
  test.each([{ lockKey: 'l' }, { slotKey: 's' }])(
    'fails after its grace, and keeps %o until it has ended',
    async (keys) => {
      const { handler: never, end } = deaf()
      handler = never
      const jobId = await submitted(bed.engine.submit(timed, {}, keys))
      const stop = working({ concurrency: 2 })
      await expect.poll(() => statusOf(jobId)).toBe('failed')
      expect(await bed.engine.get(jobId)).toMatchObject({ errorCode: 'timed_out' })
      // Time passes for everybody; its worker goes on renewing.
      const heldUntil = `select max(until)::text as until from (select expires_at as until from fencepost.resource_locks
                         union all select held_until from fencepost.slots) held`
      const [before] = await bed.query<{ until: string }>(heldUntil)
      await expect.poll(async () => (await bed.query<{ until: string }>(heldUntil))[0]?.until).not.toBe(before?.until)
      await bed.engine.sweep()
      const again = await bed.engine.submit(timed, {}, keys)
      if (keys.lockKey !== undefined) expect(again).toMatchObject({ submitted: false, why: 'locked' })
      else expect(await statusOf((again as { jobId: string }).jobId)).toBe('pending')
      handler = async () => 'next'
      end('late')
      const next = keys.lockKey === undefined ? (again as { jobId: string }).jobId : await whenFree(keys)
      await expect.poll(() => statusOf(next)).toBe('completed')
      expect(await statusOf(jobId)).toBe('failed')
      expect(await eventsOf(jobId)).toEqual(['job.submitted', 'job.started', 'job.timed_out', 'job.failed'])
      await stop()
    },
  )

  async function whenFree(keys: { lockKey?: string }): Promise<string> {
    let jobId: string | undefined
    await expect
      .poll(async () => {
        const answer = await bed.engine.submit(timed, {}, keys)
        if (answer.submitted) jobId = answer.jobId
        return answer.submitted
      })
      .toBe(true)
    return jobId as string
  }

  test('keeps its place among those that run at once', async () => {
    const { handler: never, end } = deaf()
    let begun = 0
    handler = async () => {
      begun += 1
      return begun === 1 ? never() : null
    }
    const hung = await submitted(bed.engine.submit(timed, {}))
    const stop = working({ concurrency: 1 })
    await expect.poll(() => statusOf(hung)).toBe('failed')
    const next = await submitted(bed.engine.submit(timed, {}))
    expect(await statusOf(next)).toBe('pending')
    expect(begun).toBe(1)
    end(null)
    await expect.poll(() => statusOf(next)).toBe('completed')
    await stop()
  })

  test('does not hold up the end of its worker, unless it has a lock', async () => {
    const { handler: never, end } = deaf()
    handler = never
    const jobId = await submitted(bed.engine.submit(timed, {}))
    const stop = working()
    await expect.poll(() => statusOf(jobId)).toBe('failed')
    await stop()
    const locked = await submitted(bed.engine.submit(timed, {}, { lockKey: 'l' }))
    const stopSecond = working()
    await expect.poll(() => statusOf(locked)).toBe('failed')
    let ended = false
    const done = stopSecond().then(() => (ended = true))
    expect(await bed.engine.submit(timed, {}, { lockKey: 'l' })).toMatchObject({ submitted: false })
    expect(ended).toBe(false)
    end(null)
    await done
    expect((await bed.engine.submit(timed, {}, { lockKey: 'l' })).submitted).toBe(true)
  })

  test('loses the transaction that it has open', async () => {
    const { handler: never, end } = deaf()
    handler = ({ attempt }) => attempt.transaction(never)
    const jobId = await submitted(bed.engine.submit(timed, {}))
    const stop = working()
    await expect.poll(() => statusOf(jobId)).toBe('failed')
    end(null)
    await stop()
    expect(await bed.engine.get(jobId)).toMatchObject({ errorCode: 'timed_out' })
  })
})

test('one job per process times out alike', async () => {
  handler = stopped
  const jobId = await submitted(bed.engine.submit(timed, {}))
  expect(await bed.engine.workOnce({ graceMs: 10_000 })).toEqual({ outcome: 'failed', jobId })
  const { handler: never } = deaf()
  handler = never
  const hung = await submitted(bed.engine.submit(timed, {}, { lockKey: 'l' }))
  expect(await bed.engine.workOnce({ graceMs: 1, processEnds: true })).toEqual({ outcome: 'failed', jobId: hung })
  expect(await bed.engine.get(hung)).toMatchObject({ errorCode: 'timed_out' })
  expect(await bed.query('select from fencepost.resource_locks')).toEqual([])
})
