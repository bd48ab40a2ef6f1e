import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  openEngine,
  operation,
  type Attempt,
  type Engine,
  type EngineOptions,
  type SubmitOptions,
} from '../../src/index.ts'
import { RestartedPostgres } from './restarted-postgres.ts'

// A claim that does not wait for the disk, and a Postgres that crashes before it has written it there by itself. Its log
// writer is made slow, so that it certainly has not.

let postgres: RestartedPostgres
let engine: Engine
let attempts: Attempt[]
let release: () => void

beforeEach(async () => {
  postgres = await RestartedPostgres.open({ wal_writer_delay: 10_000 })
  attempts = []
})
afterEach(async () => {
  release()
  await engine.close()
  await postgres.close()
})

/** A worker whose first handler waits to be released; the others end at once. */
async function startWorker(options: EngineOptions = {}): Promise<{ stop: () => Promise<void> }> {
  const released = new Promise<void>((resolve) => (release = resolve))
  const held = operation('held', {
    keys: 'caller',
    payload: z.object({}),
    leaseMs: 6_000,
    run: async ({ attempt }) => {
      attempts.push(attempt)
      if (attempts.length === 1) await released
    },
  })
  engine = await openEngine({ database: postgres.url, operations: [held], ...options })
  const controller = new AbortController()
  const working = engine.work({ signal: controller.signal, pollMs: 200 })
  await expect.poll(() => engine.workers()).toHaveLength(1)
  await nothingWritten()
  const stop = async () => {
    release()
    controller.abort()
    await working
  }
  return { stop }
}

/** Resolves when nothing more is written: what a worker writes when it starts would take a claim along to the disk. */
async function nothingWritten(): Promise<void> {
  let before = ''
  const hasGrown = async () => {
    const [row] = await postgres.query<{ lsn: string }>('select pg_current_wal_insert_lsn() as lsn')
    const grown = row?.lsn !== before
    before = row?.lsn ?? ''
    return grown
  }
  await expect.poll(hasGrown, { interval: 300, timeout: 10_000 }).toBe(false)
}

/** Submits a job, and crashes Postgres as soon as its handler has begun. */
async function crashInFirstAttempt(options?: SubmitOptions): Promise<string> {
  const { jobId } = (await engine.submit('held', {}, options)) as { jobId: string }
  await expect.poll(() => attempts.length, { interval: 1, timeout: 10_000 }).toBe(1)
  await postgres.stop('immediate')
  return jobId
}

describe('Postgres crashes right after a claim', () => {
  test('that it forgets: the job is done once, by the second attempt, and the first is refused', async () => {
    const worker = await startWorker()
    const jobId = await crashInFirstAttempt()
    await postgres.start()
    // Found when a worker next looks by itself, or when the first is missed at its renewal.
    await expect.poll(async () => (await engine.get(jobId))?.status, { timeout: 40_000 }).toBe('completed')
    const [first, second] = attempts as [Attempt, Attempt]
    expect(await engine.get(jobId)).toMatchObject({ attemptId: second.attemptId })
    // Or 'database_unreachable', where Postgres took long to come back.
    await expect.poll(() => first.abortReason, { timeout: 10_000 }).toBeDefined()
    expect(await first.emit('note.late')).toEqual({ written: false, why: 'fence_lost' })
    await worker.stop() // the first reports that it has completed
    expect(attempts.length).toBe(2)
    expect(await engine.get(jobId)).toMatchObject({ status: 'completed', attemptId: second.attemptId })
    const events = (await engine.events(jobId)).map(({ event, attemptId }) => [event, attemptId])
    expect(events).toContainEqual(['job.fence_rejected', first.attemptId])
    expect(events.filter(([event]) => event === 'job.completed')).toEqual([['job.completed', second.attemptId]])
  }, 60_000)

  const remembered: [string, EngineOptions, SubmitOptions][] = [
    ['of a job with a lock', {}, { lockKey: 'table' }],
    ['of a job in a slot', {}, { slotKey: 'place' }],
    ['of a job with a dedup key', {}, { dedupKey: 'once' }],
    ['of a job that may be started only once', {}, { maxAttempts: 1 }],
    ['of any job where claims are durable', { durableClaims: true }, {}],
  ]
  test.each(remembered)(
    '%s: it remembers',
    async (_, engineOptions, submitOptions) => {
      const worker = await startWorker(engineOptions)
      const jobId = await crashInFirstAttempt(submitOptions)
      await postgres.start()
      const [first] = attempts as [Attempt]
      const [row] = await postgres.query<{ status: string; attempt_id: string }>(
        `select status, replace(attempt_id::text, '-', '') as attempt_id from fencepost.jobs`,
      )
      expect(row).toEqual({ status: 'running', attempt_id: first.attemptId })
      release()
      await expect.poll(async () => (await engine.get(jobId))?.status, { timeout: 20_000 }).toBe('completed')
      expect(attempts.length).toBe(1)
      await worker.stop()
    },
    60_000,
  )
})
