import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Attempt } from '../attempt/attempt.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../../test/bed.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

/** Claims the job, and lets Postgres forget it, as a crash would that comes before the claim is on disk. */
async function claimAndForget(): Promise<Attempt> {
  const attempt = await claimOne(bed.engine)
  await bed.query(
    `update fencepost.live_jobs
        set status = 'pending', attempt_id = null, attempts = attempts - 1, locked_by = null, locked_at = null,
            lease_until = null, started_event_id = null
      where job_id = $1`,
    [attempt.jobId],
  )
  return attempt
}

const events = async (jobId: string) => (await bed.engine.events(jobId)).map(({ event }) => event)

test('an attempt whose claim was lost is spent, once, when its worker reports', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 3 }))
  const attempt = await claimAndForget()
  await bed.engine.renew([attempt])
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 1 })
  expect(await bed.engine.fail(attempt, new Error('Postgres went away'))).toMatchObject({ settled: false })
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 1 })
  expect((await events(jobId)).filter((event) => event === 'job.started')).toHaveLength(1)
})

test('a handler that crashes Postgres every time is not tried for ever', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 3 }))
  for (let crashes = 0; crashes < 3; crashes += 1) {
    await bed.engine.fail(await claimAndForget(), new Error('Postgres went away'))
  }
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'claim_lost' })
  expect((await events(jobId)).at(-1)).toBe('job.failed')
})

test('a lost claim is counted although the job already runs again, unless that is its last attempt', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 3 }))
  const lost = [await claimAndForget(), await claimAndForget()] as const
  const current = await claimOne(bed.engine)
  for (const attempt of lost) await bed.engine.fail(attempt, new Error('Postgres went away'))
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', attempts: 2, attemptId: current.attemptId })
  expect(await bed.engine.complete(current)).toEqual({ settled: true })
})

test('an attempt that an operator or the sweep ended is not counted again', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 3 }))
  const attempt = await claimOne(bed.engine, { leaseMs: 1_000 })
  await bed.advance(5_000)
  await bed.engine.sweep()
  await bed.engine.fail(attempt, new Error('late'))
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 1 })
})

test('an attempt that a renewal and a report find lost at the same time is spent once', async () => {
  const gate = new Gate()
  const engine = await bed.open({}, { pausePoint: gate.pausePoint })
  const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 3 }))
  const attempt = await claimAndForget()
  const stop = gate.stopAt('count_lost')
  const renewed = engine.renew([attempt])
  await stop.reached
  const reported = await engine.fail(attempt, new Error('Postgres went away')) // while the renewal is about to count it
  stop.go()
  await renewed
  expect(reported).toMatchObject({ settled: false })
  expect(gate.seen.filter((statement) => statement === 'count_lost')).toHaveLength(1)
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 1 })
})

test('counting a lost attempt does not wait for a transaction of the handler that has its job now', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, { maxAttempts: 3 }))
  const lost = await claimAndForget()
  const current = await claimOne(bed.engine)
  await current.transaction(async () => {
    await bed.engine.renew([lost])
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', attempts: 2 })
  })
})
