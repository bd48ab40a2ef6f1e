import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/attempt/attempt.ts'
import { checkStep } from '../../src/attempt/step.ts'
import { raw } from '../../src/database/sql.ts'
import type { Engine } from '../../src/engine.ts'
import { PermanentError, RetryLater } from '../../src/errors.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { endBackend } from './broken-off.ts'
import { LosingProxy } from './losing-proxy.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let proxy: LosingProxy
let engine: Engine
let other: Engine
let losing: string | undefined
const logged: string[] = []
const log = (_fields: object, message: string) => void logged.push(message)
beforeAll(async () => {
  bed = await openBed()
  proxy = await LosingProxy.open(bed.url)
  other = await bed.open()
  engine = await bed.open(
    { database: proxy.url, logger: { info: log, warn: log, error: log }, wakeDelayMs: 60_000 },
    {
      pausePoint: async ({ statement }) => {
        if (statement !== losing) return
        losing = undefined
        proxy.loseNextAnswer()
      },
    },
  )
})
beforeEach(async () => {
  await bed.reset()
  losing = undefined
  logged.length = 0
})
afterAll(async () => {
  await bed.close()
  await proxy.close()
})

const steps = [checkStep({ step: 'one', success: true }, 1000)]

/** Every settlement, and the statement that commits it. */
const settlements: [string, string, (attempt: Attempt) => Promise<unknown>][] = [
  ['complete', 'complete', (attempt) => engine.complete(attempt, { n: 1 })],
  [
    'complete in a batch',
    'complete',
    async (attempt) => {
      const outcome = { kind: 'completed' as const, result: '1', steps: [], chain: [] }
      return (await engine.settleAll([{ attempt, outcome }]))[0]
    },
  ],
  [
    'complete with a chained job',
    'complete',
    (attempt) => {
      if (attempt.links.length === 0) attempt.chain(work, { chained: true })
      return engine.complete(attempt)
    },
  ],
  [
    'complete with a chained job that has a lock',
    'complete.commit',
    (attempt) => {
      if (attempt.links.length === 0) attempt.chain(work, { chained: true }, { lockKey: 'chained' })
      return engine.complete(attempt)
    },
  ],
  ['fail', 'fail', (attempt) => engine.fail(attempt, new PermanentError('no'))],
  [
    'fail with steps',
    'fail.commit',
    (attempt) => engine.settle(attempt, { kind: 'failed', error: 'no', errorCode: 'No', permanent: true, steps }),
  ],
  ['retry', 'retry', (attempt) => engine.fail(attempt, new Error('no'))],
  ['retry later', 'retry_later', (attempt) => engine.fail(attempt, new RetryLater('busy', 60))],
  ['release', 'release', (attempt) => engine.release(attempt, 'going away')],
  ['defer', 'defer.commit', (attempt) => engine.complete(attempt, defer([child(work, {}), child(work, {})]))],
]

describe.each(settlements)('a %s whose answer was lost', (_name, statement, settle) => {
  async function unanswered(): Promise<Attempt> {
    await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
    const attempt = await claimOne(engine)
    losing = statement
    await expect(settle(attempt)).rejects.toMatchObject({
      code: 'database_unavailable',
      retryable: true,
      details: { applied: 'unknown' },
    })
    return attempt
  }

  test('has landed, and says so when it is repeated, as often as that is', async () => {
    const attempt = await unanswered()
    const after = await tableRows(bed)
    expect((await bed.engine.get(attempt.jobId))?.leaseUntil).toBeUndefined()
    expect(await settle(attempt)).toEqual({ settled: true })
    expect(await settle(attempt)).toEqual({ settled: true })
    expect(await tableRows(bed)).toEqual(after)
    expect(logged).not.toContain('writeback_stale_attempt')
  })

  test('is no excuse for another: a different settlement of the same attempt finds the fence lost', async () => {
    const attempt = await unanswered()
    const different = statement.startsWith('fail')
      ? engine.complete(attempt)
      : engine.fail(attempt, new PermanentError('x'))
    expect(await different).toEqual({ settled: false, why: 'fence_lost' })
  })
})

test('a retry later whose answer was lost says that it landed even when the job has asked for it again elsewhere', async () => {
  await submitted(bed.engine.submit(work, {}))
  const attempt = await claimOne(engine)
  const later = () => engine.fail(attempt, new RetryLater('busy', 0))
  losing = 'retry_later'
  await expect(later()).rejects.toMatchObject({ code: 'database_unavailable' })
  await other.fail(await claimOne(other), new RetryLater('busy', 0))
  const before = await tableRows(bed)
  expect(await later()).toEqual({ settled: true })
  expect(await tableRows(bed)).toEqual(before)
})

test('a release whose answer was lost says that it landed even when the job runs again elsewhere', async () => {
  await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
  const attempt = await claimOne(engine)
  losing = 'release'
  await expect(engine.release(attempt, 'going away')).rejects.toMatchObject({ code: 'database_unavailable' })
  const next = await claimOne(other)
  const before = await tableRows(bed)
  expect(await engine.release(attempt, 'going away')).toEqual({ settled: true })
  expect(await tableRows(bed)).toEqual(before)
  expect(await other.complete(next)).toEqual({ settled: true })
})

test('a defer that ended in a retry, because a child was in conflict, says that it landed when it is repeated', async () => {
  await submitted(bed.engine.submit(work, {}, { lockKey: 'taken', priority: 1 }))
  await submitted(bed.engine.submit(work, {}))
  const attempt = await claimOne(engine)
  const settle = () => engine.complete(attempt, defer([child(work, {}, { lockKey: 'taken' })]))
  losing = 'retry'
  await expect(settle()).rejects.toMatchObject({ code: 'database_unavailable' })
  const after = await tableRows(bed)
  expect(await settle()).toEqual({ settled: true })
  expect(await tableRows(bed)).toEqual(after)
})

test('a submission with a dedup key whose answer was lost is named as the holder when it is repeated', async () => {
  losing = 'submit.commit'
  await expect(engine.submit(work, {}, { lockKey: 'l', dedupKey: 'd' })).rejects.toMatchObject({ retryable: true })
  const { live_jobs: jobs } = await tableRows(bed)
  expect(jobs).toHaveLength(1)
  const again = await engine.submit(work, {}, { dedupKey: 'd' })
  expect(again).toMatchObject({ why: 'duplicate', holder: { jobId: String(jobs?.[0]?.job_id).replaceAll('-', '') } })
})

test('a claim whose answer was lost is swept when its lease has lapsed, and claimed again', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
  losing = 'claim'
  await expect(engine.claim()).rejects.toMatchObject({ code: 'database_unavailable' })
  expect(await other.claim()).toEqual([])
  await bed.advance(31_000)
  expect((await claimOne(other)).claimed).toMatchObject({ jobId, attempts: 2 })
})

test('a cancel whose child’s parent could not be closed has cancelled, says so, and the sweep closes the parent', async () => {
  const parentId = await submitted(bed.engine.submit(work, {}))
  await other.complete(await claimOne(other), defer([child(work, {})]))
  const [only] = await bed.engine.children(parentId)
  const breaking = await bed.open(
    {},
    {
      pausePoint: async ({ statement, processId }) => {
        if (statement === 'close') await endBackend(bed, processId)
      },
    },
  )
  expect(await breaking.cancel(only?.jobId ?? '')).toEqual({ cancelled: true, jobIds: [only?.jobId] })
  expect(await bed.engine.sweep()).toMatchObject({ closed: [parentId] })
})

describe('a connection that Postgres ends', () => {
  test('in the middle of a statement: the statement is an error, and the very next one gets a connection that works', async () => {
    let processId: number | undefined
    const single = await bed.open(
      { maxConnections: 1 },
      {
        pausePoint: async (at) => {
          processId = at.processId
        },
      },
    )
    const held = await bed.hold((db) => db.query('lock', raw('lock table fencepost.live_jobs')))
    const cut = single.submit(work, {})
    await bed.blocked()
    // Asked for in the same turn of the event loop in which the error arrives.
    const next = cut.then(
      () => Promise.reject(new Error('the statement went through')),
      async (error: unknown) => ({ error, drain: await single.drain() }),
    )
    await endBackend(bed, processId)
    expect(await next).toMatchObject({
      error: { code: 'database_unavailable', details: { applied: 'unknown' } },
      drain: { level: 'off' },
    })
    await held.rollback()
    expect(await other.claim()).toEqual([])
  })
})

describe('attempt.complete() whose answer was lost', () => {
  const completing = async (attempt: Attempt, values: string[]) =>
    attempt.complete(async () => {
      values.push('worked')
      if (attempt.links.length === 0) attempt.chain(work, { chained: true })
      return values.length
    })

  test('answers, repeated, what it would have answered, and does nothing twice', async () => {
    await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(engine)
    const values: string[] = []
    losing = 'complete.commit'
    await expect(completing(attempt, values)).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(await other.get(attempt.jobId)).toMatchObject({ status: 'completed', result: 1 })
    expect(await completing(attempt, values)).toBe(1)
    expect(values).toEqual(['worked'])
    expect(attempt.completed).toMatchObject({ kind: 'completed', written: true })
    expect(attempt.abortReason).toBeUndefined()
    expect(await bed.query(`select from fencepost.live_jobs where payload ->> 'chained' is not null`)).toHaveLength(1)
    expect(logged).not.toContain('writeback_stale_attempt')
  })

  test('is stale, repeated, when another attempt has completed the job', async () => {
    await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(engine)
    const values: string[] = []
    await expect(
      attempt.complete(async () => {
        throw new Error('not this time')
      }),
    ).rejects.toThrow('not this time')
    await bed.advance(60_000)
    await other.sweep()
    await other.complete(await claimOne(other))
    await expect(completing(attempt, values)).rejects.toMatchObject({ code: 'fence_lost' })
    expect(values).toEqual([])
  })
})
