import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { operation } from '../../src/operation.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

const reasons: (string | undefined)[] = []
const transacting = operation('transacting', {
  payload: z.looseObject({}),
  leaseMs: 1_000,
  run: async ({ attempt }) => {
    await attempt.transaction((client) => client.query('select pg_sleep(1.5)'))
    reasons.push(attempt.abortReason)
  },
})

// Two handlers report when both have a transaction open.
let inside = 0
const reporting = operation('reporting', {
  payload: z.object({ how: z.enum(['transaction', 'complete']) }),
  run: ({ payload, attempt }) =>
    attempt[payload.how](async () => {
      inside += 1
      await expect.poll(() => inside).toBeGreaterThanOrEqual(2)
      await attempt.progress(1, 2)
      await attempt.emit('reporting.inside')
      await attempt.step('first', async () => 'kept')
    }),
})
let ask: () => Promise<unknown> = async () => null
const asking = operation('asking', {
  payload: z.looseObject({}),
  run: ({ attempt }) => attempt.transaction(() => ask()),
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [transacting, reporting, asking] })
})
afterAll(() => bed.close())

test('handlers whose transactions take every connection of the pool keep their leases', async () => {
  const engine = await bed.open({ maxConnections: 2 })
  await bed.engine.submitMany(transacting, [{ payload: {} }, { payload: {} }])
  const stop = new AbortController()
  const worked = engine.work({ concurrency: 2, signal: stop.signal })
  await expect.poll(() => bed.engine.list({ status: 'completed' }), { timeout: 10_000 }).toHaveLength(2)
  stop.abort()
  await worked
  expect(reasons).toEqual([undefined, undefined])
  expect((await bed.engine.list()).map(({ attempts }) => attempts)).toEqual([1, 1])
})

test.each(['transaction', 'complete'] as const)(
  'what handlers report inside attempt.%s() does not wait for the connections that their transactions take',
  async (how) => {
    const engine = await bed.open({ maxConnections: 2, connectTimeoutMs: 500 })
    const jobs = await bed.engine.submitMany(
      reporting,
      [1, 2].map(() => ({ payload: { how } })),
    )
    inside = 0
    const stop = new AbortController()
    const worked = engine.work({ concurrency: 2, pollMs: 50, signal: stop.signal })
    for (const job of jobs) {
      const jobId = job.submitted ? job.jobId : ''
      await expect
        .poll(() => bed.engine.get(jobId), { timeout: 10_000 })
        .toMatchObject({ status: 'completed', attempts: 1, progress: { current: 1, total: 2 } })
      expect((await bed.engine.steps([jobId])).get(jobId)).toMatchObject([{ step: 'first', success: true }])
      expect((await bed.engine.events(jobId)).map(({ event }) => event)).toContain('reporting.inside')
    }
    stop.abort()
    await worked
  },
)

test('a pool that handlers have used up is not taken for a Postgres that is away', async () => {
  const engine = await bed.open({ maxConnections: 1, connectTimeoutMs: 200 })
  const jobId = await submitted(bed.engine.submit(asking, {}, { maxAttempts: 1 }))
  ask = () => engine.get(jobId)
  const stop = new AbortController()
  const worked = engine.work({ concurrency: 1, pollMs: 50, signal: stop.signal })
  await expect.poll(() => bed.engine.get(jobId), { timeout: 10_000 }).toMatchObject({ status: 'failed' })
  stop.abort()
  await worked
  expect(await bed.engine.get(jobId)).toMatchObject({ errorCode: 'pool_exhausted' })
})
