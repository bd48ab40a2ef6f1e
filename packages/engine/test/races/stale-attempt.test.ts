import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/attempt/attempt.ts'
import { checkStep } from '../../src/attempt/step.ts'
import type { Engine } from '../../src/engine.ts'
import { FencepostError, PermanentError, RetryLater } from '../../src/errors.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { prepareSubmission } from '../../src/lifecycle/submission.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let engine: Engine
let other: Engine
const logged: { fields: Record<string, unknown>; message: string }[] = []
const log = (fields: Record<string, unknown>, message: string) => void logged.push({ fields, message })
beforeAll(async () => {
  bed = await openBed()
  engine = await bed.open({ logger: { info: log, warn: log, error: log } })
  other = await bed.open()
  await bed.query('create table user_rows (name text)')
})
beforeEach(async () => {
  await bed.reset()
  await bed.query('truncate user_rows')
  logged.length = 0
})
afterAll(() => bed.close())

const step = { step: 'late', success: true, result: { late: true } }
const lost = { settled: false, why: 'fence_lost' }
const notWritten = { written: false, why: 'fence_lost' }
const fenceLost = expect.objectContaining({ code: 'fence_lost', retryable: false })
const caught = (promise: Promise<unknown>) => promise.catch((error: unknown) => error)

/** Everything that can be done in the name of an attempt: how, what it answers when stale, and the verb in the event. */
const writes: [string, (attempt: Attempt) => Promise<unknown>, unknown, string | undefined][] = [
  ['completes', (attempt) => engine.complete(attempt, { late: true }), lost, 'complete'],
  [
    'completes in a batch',
    (attempt) =>
      engine.settleAll([{ attempt, outcome: { kind: 'completed', result: '"late"', steps: [], chain: [] } }]),
    [lost],
    'complete',
  ],
  [
    'completes with steps and a chained job',
    async (attempt) => {
      const chain = [await prepareSubmission(work, { chained: true }, { lockKey: 'chained' }, 1000)]
      return engine.settle(attempt, { kind: 'completed', result: '1', steps: [checkStep(step, 1000)], chain })
    },
    lost,
    'complete',
  ],
  [
    'chains a job',
    (attempt) => {
      attempt.chain(work, { chained: true })
      return engine.complete(attempt)
    },
    lost,
    'complete',
  ],
  ['fails', (attempt) => engine.fail(attempt, new PermanentError('late')), lost, 'fail'],
  [
    'fails with steps',
    (attempt) =>
      engine.settle(attempt, {
        kind: 'failed',
        error: 'late',
        errorCode: 'late',
        permanent: true,
        steps: [checkStep(step, 1000)],
      }),
    lost,
    'fail',
  ],
  ['retries', (attempt) => engine.fail(attempt, new Error('late')), lost, 'retry'],
  ['asks to be retried later', (attempt) => engine.fail(attempt, new RetryLater('late', 1)), lost, 'retry_later'],
  ['releases', (attempt) => engine.release(attempt, 'late'), lost, 'release'],
  ['defers to children', (attempt) => engine.complete(attempt, defer([child(work, {})])), lost, 'defer'],
  ['writes an event', (attempt) => attempt.emit('late.event'), notWritten, 'emit'],
  [
    'writes an event with progress',
    (attempt) => attempt.emit('late.event', { progress: { current: 99, total: 100 } }),
    notWritten,
    'emit',
  ],
  ['sets its progress', (attempt) => attempt.progress(99, 100), notWritten, 'progress'],
  ['stores a step', (attempt) => attempt.recordStep(step), notWritten, 'step'],
  ['runs a step', (attempt) => caught(attempt.step('late', async () => 'late')), fenceLost, 'step'],
  [
    'writes rows of the user',
    (attempt) => caught(attempt.transaction((client) => client.query(`insert into user_rows values ('late')`))),
    fenceLost,
    'transaction',
  ],
  ['renews', async (attempt) => (await engine.renew([attempt])).lost.length, 1, 'renew'],
  ['lets go of its lock and slot', (attempt) => attempt.letGo(), undefined, undefined],
]

interface Takeover {
  stale: Attempt
  next: Attempt
}

/** An attempt, and the next one of the same job, which has begun to work. */
async function takenOver(by: Engine, how: 'expired' | 'recovered' | 'released'): Promise<Takeover> {
  const keys = { lockKey: 'l', slotKey: 's', dedupKey: 'd', pipelineId: 'f'.repeat(32), maxAttempts: 5 }
  const jobId = await submitted(bed.engine.submit(work, {}, keys))
  const stale = await claimOne(engine)
  await bed.advance(3_600_000)
  if (how === 'recovered') await bed.engine.recover(jobId)
  if (how === 'released') await engine.release(stale, 'going away')
  const next = await claimOne(by)
  expect(next.jobId).toBe(jobId)
  await next.emit('work.begun', { progress: { current: 1, total: 3 } })
  await next.recordStep({ step: 'one', success: true, result: 1 })
  return { stale, next }
}

const settledOtherwise = (how: string, verb: string | undefined) => how === 'released' && verb === 'release'

describe.each([
  ['expired, and another process claimed the job', 'expired', () => other],
  ['expired, and the same process claimed the job again', 'expired', () => engine],
  ['recovered by an operator, and another process claimed the job', 'recovered', () => other],
  ['released, and the same process claimed the job again', 'released', () => engine],
] as const)('an attempt that was %s', (_name, how, by) => {
  test.each(writes.filter(([, , , verb]) => !settledOtherwise(how, verb)))(
    'changes nothing when it %s',
    async (_verb, write, answer, verb) => {
      const { stale, next } = await takenOver(by(), how)
      const before = await tableRows(bed)
      expect(await write(stale)).toEqual(answer)
      expect(await tableRows(bed, { events: ['job.fence_rejected'] })).toEqual(before)
      expect(await bed.query('select from user_rows')).toEqual([])

      const rejected = (await bed.engine.events(stale.jobId)).filter(({ event }) => event === 'job.fence_rejected')
      const warned = logged.filter(({ message }) => message === 'writeback_stale_attempt')
      if (verb === undefined) {
        expect(rejected).toEqual([])
      } else {
        expect(rejected).toMatchObject([{ attemptId: stale.attemptId, level: 'warning', fields: { verb } }])
        expect(warned).toMatchObject([{ fields: { job_id: stale.jobId, attempt_id: stale.attemptId, verb } }])
      }
      const whileRunning = ['renew', 'emit', 'progress', 'step', 'transaction'].includes(verb ?? '')
      if (whileRunning) expect(stale.signal.reason).toBe('fence_lost')

      expect(next.signal.aborted).toBe(false)
      expect(await by().renew([next])).toEqual({ lost: [] })
      expect(await by().complete(next, { kept: true })).toEqual({ settled: true })
      expect(await bed.engine.get(stale.jobId)).toMatchObject({
        status: 'completed',
        attemptId: next.attemptId,
        result: { kept: true },
        progress: { current: 1, total: 3 },
      })
    },
  )
})

describe('an attempt whose job has ended', () => {
  test.each(writes)('changes nothing when it %s after its job was cancelled', async (_verb, write, answer, verb) => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const stale = await claimOne(engine)
    await bed.engine.cancel(jobId)
    const before = await tableRows(bed)
    expect(await write(stale)).toEqual(answer)
    expect(await tableRows(bed, { events: ['job.fence_rejected'] })).toEqual(before)
    expect(await bed.query('select from user_rows')).toEqual([])
    expect(logged.filter(({ message }) => message === 'writeback_stale_attempt')).toHaveLength(verb ? 1 : 0)
  })

  // Completing again is repeating a report, which is answered as the first time; see lost-answer.test.ts.
  test.each(writes.filter(([, , , verb]) => verb !== 'complete'))(
    'changes nothing when it %s after it has completed',
    async (_verb, write, answer) => {
      await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
      const stale = await claimOne(engine)
      await engine.complete(stale, { first: true })
      await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
      await claimOne(other)
      const before = await tableRows(bed)
      expect(await write(stale)).toEqual(answer)
      expect(await tableRows(bed, { events: ['job.fence_rejected'] })).toEqual(before)
      expect(await bed.query('select from user_rows')).toEqual([])
    },
  )
})

test('the id of the next attempt does not help an attempt of another job', async () => {
  await bed.engine.submitMany(work, [{ payload: {} }, { payload: {} }])
  const [one, two] = await engine.claim({ limit: 2 })
  if (one === undefined || two === undefined) throw new Error('nothing to claim')
  await bed.engine.cancel(one.jobId)
  const before = await tableRows(bed)
  const answers = await engine.settleAll([
    { attempt: one, outcome: { kind: 'completed', result: '1', steps: [], chain: [] } },
  ])
  expect(answers).toEqual([lost])
  expect(await tableRows(bed, { events: ['job.fence_rejected'] })).toEqual(before)
  expect(await engine.complete(two)).toEqual({ settled: true })
})

test('an attempt that still has its fence keeps its lock and slot, whatever it lets go of', async () => {
  await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
  const attempt = await claimOne(engine)
  const before = await tableRows(bed)
  await attempt.letGo()
  expect(await tableRows(bed)).toEqual(before)
})

test('a batch settles those that hold their fence, and tells the others', async () => {
  await bed.engine.submitMany(work, [{ payload: {} }, { payload: {} }, { payload: {} }])
  const attempts = await engine.claim({ limit: 3 })
  await bed.engine.cancel(attempts[1]?.jobId ?? '')
  const answers = await engine.settleAll(
    attempts.map((attempt) => ({ attempt, outcome: { kind: 'completed', result: '1', steps: [], chain: [] } })),
  )
  expect(answers).toEqual([{ settled: true }, lost, { settled: true }])
  const statuses = await Promise.all(attempts.map(async ({ jobId }) => (await bed.engine.get(jobId))?.status))
  expect(statuses).toEqual(['completed', 'cancelled', 'completed'])
})

test('a handler whose fence is lost half-way learns it from its next write', async () => {
  await submitted(bed.engine.submit(work, {}))
  const attempt = await claimOne(engine)
  await attempt.step('one', async () => 1)
  await bed.advance(3_600_000)
  await bed.engine.sweep()
  const error = await caught(attempt.step('two', async () => 2))
  expect(error).toBeInstanceOf(FencepostError)
  expect(attempt.signal.reason).toBe('fence_lost')
  expect(await attempt.steps()).toMatchObject([{ step: 'one' }])
})
