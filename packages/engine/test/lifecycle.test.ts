import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../src/attempt/attempt.ts'
import { PermanentError, RetryLater } from '../src/errors.ts'
import { child, defer } from '../src/lifecycle/defer.ts'
import { openBed, submitted, work, type Bed } from './bed.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

async function claimOne(): Promise<Attempt> {
  const [attempt] = await bed.engine.claim()
  if (attempt === undefined) throw new Error('nothing to claim')
  return attempt
}

const eventsOf = async (jobId: string) => (await bed.engine.events(jobId)).map(({ event }) => event)
const locks = () => bed.query('select lock_key, job_id, attempt_id, expires_at from fencepost.resource_locks')

describe('complete', () => {
  test('an uneventful job goes from submitted to completed with its result', async () => {
    const jobId = await submitted(bed.engine.submit(work, { n: 1 }, { by: 'ann' }))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0, payload: { n: 1 } })
    const attempt = await claimOne()
    expect(await bed.engine.get(jobId)).toMatchObject({
      status: 'running',
      attempts: 1,
      attemptId: attempt.attemptId,
      lockedBy: bed.engine.workerId,
    })
    expect(await bed.engine.complete(attempt, { bytes: 42 })).toEqual({ settled: true })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: { bytes: 42 }, error: undefined })
    expect(await eventsOf(jobId)).toEqual(['job.submitted', 'job.started', 'job.completed'])
    expect((await bed.engine.events(jobId))[0]?.fields).toEqual({ by: 'ann' })
  })

  test('a batch settles in one statement, each with its own result', async () => {
    await bed.engine.submitMany(
      work,
      [1, 2, 3].map((n) => ({ payload: { n } })),
    )
    const attempts = await bed.engine.claim({ limit: 10 })
    const answers = await bed.engine.settleAll(
      attempts.map((attempt, nth) => ({
        attempt,
        outcome: { kind: 'completed', result: JSON.stringify(nth), steps: [], chain: [] },
      })),
    )
    expect(answers).toEqual([{ settled: true }, { settled: true }, { settled: true }])
    const results = await Promise.all(attempts.map(async ({ jobId }) => (await bed.engine.get(jobId))?.result))
    expect(results).toEqual([0, 1, 2])
  })

  test('the lock goes with the end of the job', async () => {
    await submitted(bed.engine.submit(work, {}, { lockKey: 'table:a' }))
    const attempt = await claimOne()
    expect(await locks()).toMatchObject([{ lock_key: 'table:a', expires_at: expect.any(Date) as Date }])
    await bed.engine.complete(attempt)
    expect(await locks()).toEqual([])
  })
})

describe('the progress of a parent', () => {
  test('is how many of its children have ended, of all of them, whatever it reported before', async () => {
    const parent = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne()
    await attempt.progress(7, 9)
    await bed.engine.complete(attempt, defer([child(work, {}), child(work, {}), child(work, {})], { failWhen: 'all' }))
    const progress = async () => (await bed.engine.get(parent))?.progress
    expect(await progress()).toEqual({ current: 0, total: 3 })
    await bed.engine.complete(await claimOne())
    expect(await progress()).toEqual({ current: 1, total: 3 })
    await bed.engine.fail(await claimOne(), new PermanentError('no'))
    expect(await progress()).toEqual({ current: 2, total: 3 })
    await bed.engine.complete(await claimOne())
    expect(await progress()).toEqual({ current: 3, total: 3 })
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'completed' })
  })
})

describe('fail and retry', () => {
  test('an error sends the job back with a growing delay until its attempts are spent', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 2, lockKey: 'table:a' }))
    await bed.engine.fail(await claimOne(), new TypeError('broken'))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 1, errorCode: 'TypeError' })
    expect(await locks()).toMatchObject([{ attempt_id: null, expires_at: null }])
    expect(await bed.engine.claim()).toEqual([])
    await bed.advance(1000)
    await bed.engine.fail(await claimOne(), new TypeError('broken again'))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', attempts: 2, error: 'broken again' })
    expect(await locks()).toEqual([])
    expect(await eventsOf(jobId)).toEqual(['job.submitted', 'job.started', 'job.retried', 'job.started', 'job.failed'])
  })

  test.each([
    ['job.retried', new Error('no', { cause: new RangeError('too far') })],
    ['job.failed', new PermanentError('no', { cause: new RangeError('too far') })],
  ])('%s says where the error was thrown and what caused it', async (event, error) => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await bed.engine.fail(await claimOne(), error)
    const told = (await bed.engine.events(jobId)).find((one) => one.event === event)
    expect(told?.fields).toMatchObject({
      stack: expect.stringContaining('lifecycle.test.ts') as string,
      causes: [{ error: 'RangeError: too far', stack: expect.stringContaining('lifecycle.test.ts') as string }],
    })
  })

  test('a permanent error fails the job at once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await bed.engine.fail(await claimOne(), new PermanentError('no such table'))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', attempts: 1, errorCode: 'PermanentError' })
  })

  test('text that Postgres cannot store does not keep an error from being reported', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await bed.engine.fail(await claimOne(), new PermanentError('a\u0000b\ud800'))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', error: 'a\ufffdb\ufffd' })
  })

  test('retry later gives the attempt back and says why', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 1 }))
    await bed.engine.fail(await claimOne(), new RetryLater('GPU busy', 60))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect((await bed.engine.events(jobId)).at(-1)).toMatchObject({
      event: 'job.retry_later',
      fields: { reason: 'GPU busy', delay_seconds: 60 },
    })
    await bed.advance(59_000)
    expect(await bed.engine.claim()).toEqual([])
    await bed.advance(1_000)
    expect((await claimOne()).jobId).toBe(jobId)
  })

  test('retry later is one event, which counts, however often it happens', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const attempts: string[] = []
    for (let nth = 1; nth <= 12; nth += 1) {
      const attempt = await claimOne()
      attempts.unshift(attempt.attemptId)
      await bed.engine.fail(attempt, new RetryLater(`busy ${nth}`, 0))
    }
    const events = await bed.engine.events(jobId)
    expect(events.map(({ event }) => event)).toEqual(['job.submitted', 'job.retry_later'])
    expect(events[1]).toMatchObject({
      attemptId: attempts[0],
      message: 'busy 12',
      fields: { reason: 'busy 12', delay_seconds: 0, times: 12, attempts: attempts.slice(0, 10) },
    })
    const firstAt = (events[1]?.fields as { first_at: string } | undefined)?.first_at ?? ''
    expect(Date.parse(firstAt)).toBeLessThan(Date.parse(events[1]?.ts ?? ''))
    const seen = events[1]?.id ?? ''
    await bed.engine.fail(await claimOne(), new RetryLater('busy 13', 0))
    expect(await bed.engine.events(jobId, { after: seen })).toMatchObject([{ fields: { times: 13 } }])
  })

  test('retry later folds the newest of several events that an earlier release has left', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await bed.query(
      `insert into fencepost.stored_events (job_id, ts, event, message)
       select $1, fencepost.clock(), 'job.retry_later', 'earlier ' || nth from generate_series(1, 2) nth`,
      [jobId],
    )
    await bed.engine.fail(await claimOne(), new RetryLater('busy', 0))
    const events = (await bed.engine.events(jobId)).filter(({ event }) => event === 'job.retry_later')
    expect(events).toMatchObject([{ message: 'earlier 1' }, { message: 'busy', fields: { times: 2 } }])
  })

  test('release gives the job back at once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 1, slotKey: 's' }))
    await bed.engine.release(await claimOne(), 'shutdown')
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect((await claimOne()).claimed.attempts).toBe(1)
  })

  test('release gives the job its old place, before those that were due after it', async () => {
    const first = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne()
    await bed.advance(1_000)
    const second = await submitted(bed.engine.submit(work, {}))
    await bed.advance(1_000)
    await bed.engine.release(attempt, 'not_started')
    expect((await bed.engine.claim({ limit: 2 })).map(({ jobId }) => jobId)).toEqual([first, second])
  })
})

describe('expire', () => {
  test('a lease that passes puts the job back, and fails it when no attempt is left', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 2, lockKey: 'l' }))
    const first = await claimOne()
    await bed.advance(29_000)
    expect(await bed.engine.sweep()).toMatchObject({ expired: [] })
    await bed.advance(1_500)
    expect(await bed.engine.sweep()).toMatchObject({ expired: [jobId] })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 1, attemptId: undefined })
    const second = await claimOne()
    expect(second.attemptId).not.toBe(first.attemptId)
    await bed.advance(31_000)
    expect(await bed.engine.sweep()).toMatchObject({ expired: [], failed: [jobId] })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'lease_expired' })
    expect(await locks()).toEqual([])
    expect(await eventsOf(jobId)).toEqual([
      'job.submitted',
      'job.started',
      'job.expired',
      'job.started',
      'job.expired',
      'job.failed',
    ])
  })

  test('the sweep leaves the locks of jobs that live alone', async () => {
    await submitted(bed.engine.submit(work, {}, { lockKey: 'pending', delayMs: 3_600_000 }))
    await submitted(bed.engine.submit(work, {}, { lockKey: 'parent' }))
    await bed.engine.complete(await claimOne(), defer([child(work, {})]))
    await bed.advance(60_000)
    expect(await bed.engine.sweep()).toMatchObject({ freedLocks: [] })
    expect(await locks()).toHaveLength(2)
  })

  test('a claim that finds nothing sweeps and looks again', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await claimOne()
    await bed.advance(31_000)
    expect((await claimOne()).jobId).toBe(jobId)
  })

  test('renewing keeps the lease and the lock alive', async () => {
    await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    const attempt = await claimOne()
    await bed.advance(20_000)
    expect(await bed.engine.renew([attempt])).toEqual({ lost: [] })
    await bed.advance(20_000)
    expect(await bed.engine.sweep()).toMatchObject({ expired: [], freedLocks: [] })
    expect(await bed.engine.complete(attempt)).toEqual({ settled: true })
  })

  test('a renewal that misses fires the signal', async () => {
    await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne()
    await bed.advance(31_000)
    await bed.engine.sweep()
    expect((await bed.engine.renew([attempt])).lost).toEqual([attempt])
    expect(attempt.signal.reason).toBe('fence_lost')
  })
})

describe('cancel', () => {
  test('a pending job is cancelled and its lock is free at once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    expect(await bed.engine.cancel(jobId, { by: 'ann' })).toEqual({ cancelled: true, jobIds: [jobId] })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'cancelled', error: 'Cancelled by user' })
    expect(await locks()).toEqual([])
    expect(await bed.engine.cancel(jobId)).toEqual({ cancelled: false, why: 'finished', status: 'cancelled' })
    expect(await bed.engine.cancel('0'.repeat(32))).toEqual({ cancelled: false, why: 'not_found' })
  })

  test('a running job keeps its lock until its worker lets go', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    const attempt = await claimOne()
    await bed.engine.cancel(jobId)
    expect(await bed.engine.submit(work, {}, { lockKey: 'l' })).toEqual({
      submitted: false,
      why: 'locked',
      lockKey: 'l',
      holder: { jobId, attemptId: attempt.attemptId },
    })
    expect(await bed.engine.complete(attempt)).toEqual({ settled: false, why: 'fence_lost' })
    expect(await bed.engine.submit(work, {}, { lockKey: 'l' })).toMatchObject({ submitted: true })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'cancelled' })
  })

  test('a cancelled job whose worker died frees its lock when the lease passes', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    await claimOne()
    await bed.engine.cancel(jobId)
    await bed.advance(31_000)
    expect(await bed.engine.sweep()).toMatchObject({ freedLocks: ['l'] })
  })
})

describe('children', () => {
  const deferTo = async (count: number, options: Parameters<typeof defer>[1] = {}) => {
    const parent = await submitted(bed.engine.submit(work, { parent: true }))
    const children = Array.from({ length: count }, (_, n) => child(work, { n }))
    await bed.engine.complete(await claimOne(), defer(children, options))
    return parent
  }

  test('a parent waits without a lease and closes with its last child', async () => {
    const parent = await deferTo(2, { result: { batches: 2 } })
    expect(await bed.engine.get(parent)).toMatchObject({
      status: 'running',
      attemptId: undefined,
      leaseUntil: undefined,
      children: { total: 2, completed: 0, failed: 0 },
    })
    await bed.engine.complete(await claimOne())
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'running', children: { completed: 1 } })
    await bed.engine.complete(await claimOne())
    expect(await bed.engine.get(parent)).toMatchObject({
      status: 'completed',
      result: { batches: 2 },
      children: { total: 2, completed: 2, failed: 0 },
    })
    expect(await eventsOf(parent)).toEqual(['job.submitted', 'job.started', 'job.deferred', 'job.completed'])
  })

  test.each([
    ['any', 3, 1, 'failed'],
    ['all', 3, 2, 'completed'],
    ['all', 3, 3, 'failed'],
    [{ ratio: 0.5 }, 4, 2, 'completed'],
    [{ ratio: 0.5 }, 4, 3, 'failed'],
  ] as const)('failing when %j of %i, with %i failed, ends as %s', async (failWhen, total, failing, status) => {
    const parent = await deferTo(total, { failWhen })
    for (const [nth, attempt] of (await bed.engine.claim({ limit: total })).entries()) {
      await (nth < failing ? bed.engine.fail(attempt, new PermanentError('bad')) : bed.engine.complete(attempt))
    }
    expect(await bed.engine.get(parent)).toMatchObject({
      status,
      children: { total, completed: total - failing, failed: failing },
      ...(status === 'failed' ? { errorCode: 'children_failed' } : {}),
    })
  })

  test('at most three distinct causes are kept', async () => {
    const parent = await deferTo(6)
    for (const [nth, attempt] of (await bed.engine.claim({ limit: 6 })).entries()) {
      await bed.engine.fail(attempt, new PermanentError(`cause ${nth % 4}`))
    }
    expect((await bed.engine.get(parent))?.error).toBe(
      '6 of 6 children failed: PermanentError: cause 0; PermanentError: cause 1; PermanentError: cause 2',
    )
  })

  test('a parent with no children completes at once', async () => {
    const parent = await deferTo(0, { result: 7 })
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'completed', result: 7 })
  })

  test('cancelling a parent cancels its children, and theirs', async () => {
    const parent = await deferTo(2)
    const middle = await claimOne()
    await bed.engine.complete(middle, defer([child(work, {})]))
    const answer = await bed.engine.cancel(parent)
    expect(answer).toMatchObject({ cancelled: true })
    expect((await bed.engine.list({ status: 'cancelled' })).length).toBe(4)
    expect(await bed.query('select from fencepost.live_jobs')).toEqual([])
  })

  test('nested parents close from the bottom up', async () => {
    const parent = await deferTo(1)
    await bed.engine.complete(await claimOne(), defer([child(work, {}), child(work, {})]))
    await bed.engine.complete(await claimOne())
    await bed.engine.complete(await claimOne())
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'completed' })
  })

  test('ten thousand children never touch their parent’s row', async () => {
    const parent = await deferTo(10_000)
    const version = () => bed.query('select xmin, ctid from fencepost.live_jobs where job_id = $1', [parent])
    const before = await version()
    for (let left = 10_000; left > 1;) {
      const attempts = await bed.engine.claim({ limit: Math.min(1000, left - 1) })
      left -= attempts.length
      await bed.engine.settleAll(
        attempts.map((attempt) => ({
          attempt,
          outcome: { kind: 'completed', result: 'null', steps: [], chain: [] },
        })),
      )
    }
    expect(await version()).toEqual(before)
    await bed.engine.complete(await claimOne())
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'completed', children: { completed: 10_000 } })
  })

  test('a child that wants the slot of a job that waits for it is refused, for it could never run', async () => {
    const parent = await submitted(bed.engine.submit(work, {}, { slotKey: 's' }))
    await bed.engine.complete(await claimOne(), defer([child(work, {})]))
    const middle = await claimOne()
    await bed.engine.complete(middle, defer([child(work, {}, { slotKey: 's' })]))
    expect(await bed.engine.get(middle.jobId)).toMatchObject({ status: 'failed', errorCode: 'child_conflict' })
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'failed', errorCode: 'children_failed' })
  })

  test('a child whose lock is taken makes the parent try again later', async () => {
    await submitted(bed.engine.submit(work, {}, { lockKey: 'l', delayMs: 3_600_000 }))
    const parent = await submitted(bed.engine.submit(work, {}))
    await bed.engine.complete(await claimOne(), defer([child(work, {}), child(work, {}, { lockKey: 'l' })]))
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'pending', errorCode: 'child_conflict' })
    expect(await bed.engine.children(parent)).toEqual([])
  })
})

describe('deleted jobs of a pipeline', () => {
  test('are hidden, but still count for its status', async () => {
    const pipelineId = 'd'.repeat(32)
    const failed = await submitted(bed.engine.submit(work, {}, { pipelineId, maxAttempts: 1 }))
    await bed.engine.fail(await claimOne(), { error: 'no' })
    const completed = await submitted(bed.engine.submit(work, {}, { pipelineId }))
    await bed.engine.complete(await claimOne())
    await bed.engine.delete(failed)
    const pipeline = await bed.engine.pipeline(pipelineId)
    expect(pipeline?.jobs.map(({ jobId }) => jobId)).toEqual([completed])
    expect(pipeline?.status).toBe('partial')
    await bed.engine.delete(completed)
    expect(await bed.engine.pipeline(pipelineId)).toBeUndefined()
  })
})

describe('pipelines', () => {
  test('a chained job exists only when its predecessor completes, and shares its pipeline', async () => {
    const first = await submitted(bed.engine.submit(work, { n: 1 }))
    const failing = await claimOne()
    failing.chain(work, { n: 2 })
    await bed.engine.fail(failing, new Error('not yet'))
    expect((await bed.engine.list()).length).toBe(1)
    await bed.advance(2000)
    const attempt = await claimOne()
    attempt.chain(work, { n: 2 })
    await bed.engine.complete(attempt)
    const pipeline = await bed.engine.pipeline(first)
    expect(pipeline).toMatchObject({ status: 'running', jobs: [{ jobId: first }, { payload: { n: 2 } }] })
    expect(await eventsOf(first)).toEqual([
      'job.submitted',
      'job.started',
      'job.retried',
      'job.started',
      'job.chained',
      'job.completed',
    ])
    await bed.engine.fail(await claimOne(), new PermanentError('no'))
    expect(await bed.engine.pipeline(first)).toMatchObject({ status: 'partial' })
  })

  test('a job may chain one with its own lock', async () => {
    await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    const attempt = await claimOne()
    attempt.chain(work, {}, { lockKey: 'l' })
    await bed.engine.complete(attempt)
    expect(await locks()).toMatchObject([{ lock_key: 'l', attempt_id: null }])
    expect((await claimOne()).claimed.lockKey).toBe('l')
  })

  test('a chained job that is already there is not made twice', async () => {
    const first = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne()
    const there = await submitted(bed.engine.submit(work, {}, { dedupKey: 'd' }))
    attempt.chain(work, {}, { dedupKey: 'd' })
    expect(await bed.engine.complete(attempt)).toEqual({ settled: true })
    expect((await bed.engine.events(first)).find(({ event }) => event === 'job.chained')?.fields).toEqual({
      operation: 'work',
      conflict: 'duplicate',
      holder: there,
    })
  })

  test('a chained job that cannot have its lock shows as failed', async () => {
    const first = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne()
    await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    attempt.chain(work, {}, { lockKey: 'l' })
    expect(await bed.engine.complete(attempt)).toEqual({ settled: true })
    expect(await bed.engine.pipeline(first)).toMatchObject({
      status: 'partial',
      jobs: [{ status: 'completed' }, { status: 'failed', errorCode: 'lock_conflict' }],
    })
  })

  test('aborting cancels all that is left of it', async () => {
    const pipelineId = 'a'.repeat(32)
    await submitted(bed.engine.submit(work, {}, { pipelineId }))
    await bed.engine.complete(await claimOne(), defer([child(work, {})]))
    await submitted(bed.engine.submit(work, {}, { pipelineId }))
    const answer = await bed.engine.abortPipeline(pipelineId)
    expect(answer).toMatchObject({ aborted: true })
    expect(await bed.engine.pipeline(pipelineId)).toMatchObject({ status: 'failed' })
    expect(await bed.engine.abortPipeline(pipelineId)).toEqual({ aborted: false, why: 'nothing_to_abort' })
    expect(await bed.engine.abortPipeline('b'.repeat(32))).toEqual({ aborted: false, why: 'not_found' })
  })
})

describe('operators', () => {
  test('recover puts back only what is stale', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 1 }))
    const attempt = await claimOne()
    expect(await bed.engine.recover(jobId)).toMatchObject({ recovered: false, why: 'not_stale' })
    for (let minute = 0; minute < 31; minute += 1) {
      await bed.advance(25_000)
      await bed.engine.renew([attempt])
      await bed.advance(25_000)
      await bed.engine.renew([attempt])
      await bed.advance(10_000)
    }
    expect(await bed.engine.recover(jobId, { by: 'ann' })).toEqual({ recovered: true })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect((await bed.engine.events(jobId)).at(-1)).toMatchObject({ event: 'job.recovered', fields: { by: 'ann' } })
    expect(await bed.engine.complete(attempt)).toEqual({ settled: false, why: 'fence_lost' })
    expect(await bed.engine.recover(jobId)).toEqual({ recovered: false, why: 'not_running', status: 'pending' })
    expect(await bed.engine.recover('0'.repeat(32))).toEqual({ recovered: false, why: 'not_found' })
  })

  test('delete hides a finished job, and only a finished one', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    expect(await bed.engine.delete(jobId)).toEqual({ deleted: false, why: 'unfinished', status: 'pending' })
    await bed.engine.cancel(jobId)
    expect(await bed.engine.delete(jobId)).toEqual({ deleted: true })
    expect(await bed.engine.get(jobId)).toBeUndefined()
    expect(await bed.engine.list()).toEqual([])
    expect(await bed.engine.delete(jobId)).toEqual({ deleted: false, why: 'not_found' })
    expect(await bed.query('select from fencepost.jobs where deleted_at is not null')).toHaveLength(1)
  })

  test('retention removes old jobs with their events and steps, parents before children', async () => {
    const day = 86_400_000
    await submitted(bed.engine.submit(work, {}, { slotKey: 'current' }))
    await bed.engine.complete(await claimOne())
    await submitted(bed.engine.submit(work, {}))
    const parent = await claimOne()
    await parent.recordStep({ step: 'plan', success: true })
    await bed.engine.complete(parent, defer([child(work, {}), child(work, {})]))
    await bed.engine.complete(await claimOne())
    await bed.advance(91 * day)
    const young = await claimOne()
    await bed.engine.complete(young)
    expect(await bed.engine.retain()).toBe(1) // the one of the slot: the parent has only now ended
    await bed.advance(91 * day)
    expect(await bed.engine.retain({ batch: 2 })).toBe(3)
    expect(await bed.engine.list()).toEqual([])
    expect(await bed.query('select from fencepost.slots')).toEqual([])
    expect(await bed.query('select from fencepost.job_steps')).toEqual([])
    expect(await bed.query('select from fencepost.stored_events')).toEqual([])
  })

  test('drain refuses submissions, then claims, and never the sweep', async () => {
    await submitted(bed.engine.submit(work, {}, { maxAttempts: 1 }))
    const attempt = await claimOne()
    await bed.engine.setDrain('submissions', { by: 'ann' })
    expect(await bed.engine.drain()).toMatchObject({ level: 'submissions', updatedBy: 'ann' })
    expect(await bed.engine.submit(work, {})).toEqual({ submitted: false, why: 'drained' })
    expect(await bed.engine.submit(work, {}, { lockKey: 'l' })).toEqual({ submitted: false, why: 'drained' })
    expect(await bed.engine.submitMany(work, [{ payload: {} }, { payload: {} }])).toHaveLength(2)
    await bed.engine.complete(attempt, defer([child(work, {}, { maxAttempts: 1 })]))
    await claimOne()
    await bed.engine.setDrain('all')
    await bed.advance(31_000)
    expect(await bed.engine.sweep()).toMatchObject({ failed: [expect.any(String)], closed: [expect.any(String)] })
    await bed.engine.setDrain('off')
    const jobId = await submitted(bed.engine.submit(work, {}))
    await bed.engine.setDrain('all')
    expect(await bed.engine.claim()).toEqual([])
    expect(await bed.engine.claimJob(jobId)).toEqual({ claimed: false })
    await bed.engine.setDrain('off')
    expect(await bed.engine.claimJob(jobId)).toMatchObject({ claimed: true })
  })
})
