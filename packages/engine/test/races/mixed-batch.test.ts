import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Outcome } from '../../src/attempt/settle.ts'
import { checkStep } from '../../src/attempt/step.ts'
import type { Engine } from '../../src/engine.ts'
import { defer } from '../../src/lifecycle/defer.ts'
import { prepareSubmission } from '../../src/lifecycle/submission.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { LosingProxy } from './losing-proxy.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let proxy: LosingProxy
let engine: Engine
let losing: string | undefined
const gate = new Gate()
beforeAll(async () => {
  bed = await openBed()
  proxy = await LosingProxy.open(bed.url)
  engine = await bed.open(
    { database: proxy.url, wakeDelayMs: 60_000 },
    {
      pausePoint: async (at) => {
        await gate.pausePoint(at)
        if (at.statement !== losing) return
        losing = undefined
        proxy.loseNextAnswer()
      },
    },
  )
})
beforeEach(async () => {
  await bed.reset()
  losing = undefined
  gate.seen.length = 0
})
afterAll(async () => {
  await bed.close()
  await proxy.close()
})

const steps = [checkStep({ step: 'last', success: true }, 1000)]
const link = (options = {}) => prepareSubmission(work, { chained: true }, options, 1000)

/** Every outcome, the status that its job then has, and the event that says so. */
const outcomes: [string, () => Promise<Outcome>, string, string][] = [
  ['completes', async () => ({ kind: 'completed', result: '1', steps: [], chain: [] }), 'completed', 'job.completed'],
  [
    'chains',
    async () => ({ kind: 'completed', result: '2', steps: [], chain: [await link(), await link()] }),
    'completed',
    'job.completed',
  ],
  [
    'chains a job with a lock',
    async () => ({ kind: 'completed', result: '3', steps, chain: [await link({ lockKey: 'chained' })] }),
    'completed',
    'job.completed',
  ],
  ['fails', async () => failed({ permanent: true }), 'failed', 'job.failed'],
  ['fails with steps', async () => failed({ permanent: true, steps }), 'failed', 'job.failed'],
  ['retries', async () => failed({}), 'pending', 'job.retried'],
  [
    'comes back later',
    async () => ({ kind: 'retry_later', reason: 'busy', delaySeconds: 60 }),
    'pending',
    'job.retry_later',
  ],
  ['goes away', async () => ({ kind: 'released', reason: 'going away' }), 'pending', 'job.released'],
  [
    'defers to nobody',
    async () => ({ kind: 'deferred', children: [], failWhen: 'any', result: '4' }),
    'completed',
    'job.completed',
  ],
]

function failed(more: { permanent?: boolean; steps?: typeof steps }): Outcome {
  return { kind: 'failed', error: 'no', errorCode: 'No', permanent: false, steps: [], ...more }
}

interface Report {
  name: string
  attempt: Attempt
  outcome: Outcome
  status: string
  event: string
  stale: boolean
}

/** Two attempts for every outcome; the fence of the second one is lost. */
async function reports(): Promise<Report[]> {
  const all: Report[] = []
  for (const stale of [false, true]) {
    for (const [name, outcome, status, event] of outcomes) {
      await submitted(bed.engine.submit(work, { name }, stale ? { slotKey: name } : { lockKey: name }))
      const attempt = await claimOne(engine)
      all.push({ name, attempt, outcome: await outcome(), status, event, stale })
      if (stale) {
        const id = attempt.jobId
        await bed.query('update fencepost.live_jobs set attempt_id = gen_random_uuid() where job_id = $1', [id])
      }
    }
  }
  return all
}

const answersOf = (all: readonly Report[]) =>
  all.map(({ stale }) => (stale ? { settled: false, why: 'fence_lost' } : { settled: true }))
const statusOf = async ({ attempt }: Report) => (await bed.engine.get(attempt.jobId))?.status

test('of a batch of every outcome, exactly those are written whose attempts hold their fence', async () => {
  const all = await reports()
  expect(await engine.settleAll(all)).toEqual(answersOf(all))
  for (const report of all) {
    expect([report.name, await statusOf(report)]).toEqual([report.name, report.stale ? 'running' : report.status])
    const events = (await bed.engine.events(report.attempt.jobId)).map(({ event }) => event)
    expect(events.filter((event) => event === (report.stale ? 'job.fence_rejected' : report.event))).toHaveLength(1)
    expect(events).not.toContain(report.stale ? report.event : 'job.fence_rejected')
  }
  const { live_jobs: live = [], resource_locks: locks = [], job_steps: stored = [] } = await tableRows(bed)
  // Two of the one that chains, one of the one that chains with a lock; none of those that lost their fence.
  expect(live.filter(({ payload }) => (payload as { chained?: boolean }).chained)).toHaveLength(3)
  expect(locks.map(({ lock_key: key }) => String(key)).sort()).toEqual([
    'chained',
    'comes back later',
    'goes away',
    'retries',
  ])
  expect(stored).toHaveLength(2)
})

test('the jobs that an attempt chained are in order, and its history says so before its end', async () => {
  const [, chains] = await reports()
  const chain = await Promise.all([1, 2, 3].map((nth) => prepareSubmission(work, { nth }, {}, 1000)))
  await engine.settleAll([
    { attempt: chains?.attempt as Attempt, outcome: { kind: 'completed', result: '1', steps: [], chain } },
  ])
  const events = await bed.engine.events(chains?.attempt.jobId ?? '')
  expect(events.slice(2).map(({ event }) => event)).toEqual([
    'job.chained',
    'job.chained',
    'job.chained',
    'job.completed',
  ])
  const ids = events.flatMap(({ fields }) => (fields as { job_id?: string } | null)?.job_id ?? [])
  expect(ids).toEqual([...ids].sort())
  const jobs = await Promise.all(ids.map((id) => bed.engine.get(id)))
  expect(jobs.map((job) => job?.payload)).toEqual([{ nth: 1 }, { nth: 2 }, { nth: 3 }])
  expect(jobs.map((job) => job?.pipelineId)).toEqual(Array(3).fill(chains?.attempt.jobId))
})

describe.each(['complete', 'complete.commit', 'fail', 'fail.commit', 'retry', 'retry_later', 'release'])(
  'a batch in which the answer to %s is lost',
  (statement) => {
    test('gives the same answers when it is repeated, and changes nothing more', async () => {
      const all = await reports()
      losing = statement
      await expect(engine.settleAll(all)).rejects.toMatchObject({ details: { applied: 'unknown' } })
      await engine.settleAll(all) // what came after the lost one in its turn is written now
      const before = await tableRows(bed)
      expect(await engine.settleAll(all)).toEqual(answersOf(all))
      const { live_jobs: live, finished_jobs: finished, job_steps: stored } = await tableRows(bed)
      expect({ live, finished, stored }).toEqual({
        live: before.live_jobs,
        finished: before.finished_jobs,
        stored: before.job_steps,
      })
      for (const report of all) expect(await statusOf(report)).toBe(report.stale ? 'running' : report.status)
    })
  },
)

test.each([
  ['complete', outcomes[0]],
  ['complete', outcomes[1]],
  ['fail', outcomes[3]],
  ['retry', outcomes[5]],
  ['retry_later', outcomes[6]],
  ['release', outcomes[7]],
] as const)('a batch of one kind is one statement: %s', async (statement, outcome) => {
  const all: { attempt: Attempt; outcome: Outcome }[] = []
  for (let nth = 0; nth < 20; nth += 1) {
    await submitted(bed.engine.submit(work, {}))
    all.push({ attempt: await claimOne(engine), outcome: (await outcome?.[1]()) as Outcome })
  }
  gate.seen.length = 0
  expect(await engine.settleAll(all)).toEqual(all.map(() => ({ settled: true })))
  expect(gate.seen).toEqual([statement])
})

test('children of one parent that end in different ways close it', async () => {
  const parent = await submitted(bed.engine.submit(work, {}))
  const children = outcomes
    .filter(([, , status]) => status !== 'pending')
    .map(() => ({ operation: work, payload: {}, options: {} }))
  await engine.complete(await claimOne(engine), defer(children, { failWhen: 'all' }))
  const attempts = await engine.claim({ limit: children.length })
  const ending = outcomes.filter(([, , status]) => status !== 'pending')
  const all = await Promise.all(
    attempts.map(async (attempt, nth) => ({ attempt, outcome: (await ending[nth]?.[1]()) as Outcome })),
  )
  await engine.settleAll(all)
  expect(await bed.engine.get(parent)).toMatchObject({
    status: 'completed',
    children: { total: 6, completed: 4, failed: 2 },
  })
})

test('steps that handlers store at the same time are one statement, and each is told about its own fence', async () => {
  const attempts: Attempt[] = []
  for (let nth = 0; nth < 3; nth += 1) {
    await submitted(bed.engine.submit(work, { nth }))
    attempts.push(await claimOne(engine))
  }
  const [, stale] = attempts
  await bed.query('update fencepost.live_jobs set attempt_id = gen_random_uuid() where job_id = $1', [stale?.jobId])
  gate.seen.length = 0
  const written = await Promise.all(
    attempts.flatMap((attempt, nth) => [
      attempt.recordStep({ step: 'one', success: true, result: nth }),
      attempt.recordStep({ step: 'two', success: true, result: null, message: 'm' }),
    ]),
  )
  expect(written.map((answer) => answer.written)).toEqual([true, true, false, false, true, true])
  expect(gate.seen.filter((statement) => statement === 'step')).toHaveLength(1)
  const steps = await bed.engine.steps(attempts.map(({ jobId }) => jobId))
  expect(
    attempts.map(({ jobId }) => steps.get(jobId)?.map(({ step, ordinal, result }) => [step, ordinal, result])),
  ).toEqual([
    [
      ['one', 1, 0],
      ['two', 2, null],
    ],
    undefined,
    [
      ['one', 1, 2],
      ['two', 2, null],
    ],
  ])
})
