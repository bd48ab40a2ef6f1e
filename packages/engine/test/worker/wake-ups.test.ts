import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { operation } from '../../src/operation.ts'
import { openBed, submitted, work, type Bed } from '../bed.ts'

// Everything that makes a job claimable announces it: a worker that looks by itself only once in an hour runs it at once.

let bed: Bed
let letChildGo: () => void
let childMayEnd: Promise<void>
let conflicts: number
let stop: () => Promise<void>

const waiting = operation('waiting', {
  keys: 'caller',
  payload: z.object({}),
  run: ({ signal }) =>
    Promise.race([childMayEnd, new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))]),
})
const parent = operation('parent', {
  keys: 'caller',
  payload: z.object({}),
  run: async () => defer([child(waiting, {})]),
})
const conflicting = operation('conflicting', {
  keys: 'caller',
  payload: z.object({}),
  retry: { firstDelayMs: 50 },
  run: async () => {
    conflicts += 1
    return conflicts === 1 ? defer([child(work, {}, { dedupKey: 'taken' })]) : null
  },
})

beforeAll(async () => {
  bed = await openBed({ operations: [work, waiting, parent, conflicting] })
})
beforeEach(async () => {
  await bed.reset()
  conflicts = 0
  childMayEnd = new Promise((resolve) => (letChildGo = resolve))
  const controller = new AbortController()
  const worked = bed.engine.work({ signal: controller.signal, pollMs: 3_600_000, sweepMs: 3_600_000 })
  await expect.poll(() => bed.engine.workers()).toHaveLength(1)
  await looksNoMore()
  stop = async () => {
    letChildGo()
    controller.abort()
    await worked
  }
})
afterEach(() => stop())
afterAll(() => bed.close())

/** Resolves when the worker has looked for work for the first time, and is at nothing any more. */
async function looksNoMore(): Promise<void> {
  const jobId = await submitted(bed.engine.submit(work, {}))
  await expectStatus(jobId, 'completed')
  const busy = `select from pg_stat_activity
                 where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`
  await expect.poll(() => bed.query(busy)).toEqual([])
}

/** Submits a job that nobody is told of: with a client of the caller's, announcing it is the caller's affair. */
async function submitQuietly(slotKey: string | undefined, maxAttempts = 3): Promise<string> {
  const client = new pg.Client({ connectionString: bed.url })
  await client.connect()
  try {
    return await submitted(
      bed.engine.submit(work, {}, { ...(slotKey === undefined ? {} : { slotKey }), maxAttempts, client }),
    )
  } finally {
    await client.end()
  }
}

const expectStatus = (jobId: string, status: string) =>
  expect.poll(async () => (await bed.engine.get(jobId))?.status, { timeout: 10_000 }).toBe(status)
const expectDeferred = (jobId: string) =>
  expect.poll(async () => (await bed.engine.get(jobId))?.deferredAt, { timeout: 10_000 }).toBeDefined()

test('a parent that is closed frees its slot, and the next job of the slot runs', async () => {
  const first = await submitted(bed.engine.submit(parent, {}, { slotKey: 's' }))
  await expectDeferred(first)
  const next = await submitQuietly('s')
  letChildGo()
  await expectStatus(first, 'completed')
  await expectStatus(next, 'completed')
})

test('a parent that is cancelled while it waits frees its slot, and the next job of the slot runs', async () => {
  const first = await submitted(bed.engine.submit(parent, {}, { slotKey: 's' }))
  await expectDeferred(first)
  const next = await submitQuietly('s')
  await bed.engine.cancel(first)
  await expectStatus(next, 'completed')
})

test('a job that failed for want of a worker frees its slot, and the next job of the slot runs', async () => {
  const dead = await bed.open({ workerId: 'dead' })
  const first = await submitQuietly('s', 1)
  expect(await dead.claimJob(first, { leaseMs: 1_000 })).toMatchObject({ claimed: true })
  const next = await submitQuietly('s')
  await bed.advance(5_000)
  await dead.sweep()
  await expectStatus(first, 'failed')
  await expectStatus(next, 'completed')
})

test('claims that are no longer drained run what has come meanwhile', async () => {
  const jobIds = [await submitQuietly(undefined), await submitQuietly('s')]
  await bed.engine.setDrain('all')
  await bed.engine.setDrain('off')
  for (const jobId of jobIds) await expectStatus(jobId, 'completed')
})

test('a deferral whose children are refused is tried again when it is due', async () => {
  await bed.engine.submit(work, {}, { dedupKey: 'taken', delayMs: 3_600_000 })
  const jobId = await submitted(bed.engine.submit(conflicting, {}))
  await expectStatus(jobId, 'completed')
  expect(conflicts).toBe(2)
})
