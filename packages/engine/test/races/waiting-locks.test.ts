import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { sql } from '../../src/database/sql.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { completing, renewing, submitting } from './uncommitted.ts'

const gate = new Gate()
let bed: Bed
let other: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open({}, { pausePoint: gate.pausePoint })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const waiting = { lockKey: 'l', onLocked: 'wait' } as const
const holderOf = async (lockKey = 'l') =>
  (
    await bed.query<{ id: string }>(
      `select replace(job_id::text, '-', '') as id from fencepost.resource_locks
                                     where lock_key = $1`,
      [lockKey],
    )
  )[0]?.id
const waits = async (jobId: string) =>
  (
    await bed.query<{ waits: boolean }>('select waits_for_lock as waits from fencepost.jobs where job_id = $1', [jobId])
  )[0]?.waits

describe('a holder that ends while a job joins the line', () => {
  test('waits for the submission to commit, and then hands over to it', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const joining = await bed.hold(submitting(waiting))
    const ended = bed.engine.complete(holder, null)
    await bed.blocked()
    await joining.commit()
    expect(await ended).toEqual({ settled: true })
    const [answer] = joining.value
    if (!answer?.submitted) throw new Error('not submitted')
    expect(answer.waitsForLock).toBe(true)
    expect(await holderOf()).toBe(answer.jobId)
    expect((await claimOne(bed.engine)).jobId).toBe(answer.jobId)
  })

  test('lets go for good when the submission is rolled back', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const joining = await bed.hold(submitting(waiting))
    const ended = bed.engine.complete(holder, null)
    await bed.blocked()
    await joining.rollback()
    expect(await ended).toEqual({ settled: true })
    expect(await holderOf()).toBeUndefined()
  })

  test('and is not committed yet keeps the submission waiting, which then takes the free lock', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const ending = await bed.hold(completing(holder))
    const joining = bed.engine.submit(work, {}, waiting)
    await bed.blocked()
    await ending.commit()
    const answer = await joining
    expect(answer).toEqual({ submitted: true, jobId: expect.any(String) })
    expect(await holderOf()).toBe(answer.submitted ? answer.jobId : '')
  })

  test('and has handed over to another sends the submission behind that one', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const first = await submitted(bed.engine.submit(work, {}, waiting))
    const ending = await bed.hold(completing(holder))
    const joining = bed.engine.submit(work, {}, waiting)
    await bed.blocked()
    await ending.commit()
    const answer = await joining
    expect(answer).toMatchObject({ submitted: true, waitsForLock: true })
    expect(await holderOf()).toBe(first)
  })

  test('between its two looks at the lock leaves the lock to the submission', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const stop = gate.stopAt('submit.join_lines')
    const joining = other.submit(work, {}, waiting)
    await stop.reached
    await bed.engine.complete(holder, null)
    stop.go()
    const answer = await joining
    expect(answer).toEqual({ submitted: true, jobId: expect.any(String) })
    expect(await holderOf()).toBe(answer.submitted ? answer.jobId : '')
  })

  test('and whose lock somebody else takes at once sends the submission behind that one', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const stop = gate.stopAt('submit.join_lines')
    const joining = other.submit(work, {}, waiting)
    await stop.reached
    await bed.engine.complete(holder, null)
    const quick = await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    stop.go()
    const answer = await joining
    expect(answer).toMatchObject({ submitted: true, waitsForLock: true })
    expect(await holderOf()).toBe(quick)
    await bed.engine.cancel(quick)
    expect(await holderOf()).toBe(answer.submitted ? answer.jobId : '')
  })
})

test('while a submission that waits is not committed, its holder is claimed, renewed and retried', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, waiting))
  const joining = await bed.hold(submitting(waiting))
  const attempt = await claimOne(bed.engine)
  const renewed = await bed.hold(renewing(attempt.claimed))
  expect(renewed.value).toEqual([])
  await renewed.commit()
  expect(await bed.engine.fail(attempt, new Error('once'))).toEqual({ settled: true })
  await joining.commit()
  expect(await holderOf()).toBe(jobId)
})

describe('a job in line that is being cancelled while the holder ends', () => {
  test('is passed over, and the next one gets the lock', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const first = await submitted(bed.engine.submit(work, {}, waiting))
    const second = await submitted(bed.engine.submit(work, {}, waiting))
    const stop = gate.stopAt('cancel.jobs')
    const cancelled = other.cancel(first)
    await stop.reached
    expect(await bed.engine.complete(holder, null)).toEqual({ settled: true })
    stop.go()
    expect(await cancelled).toMatchObject({ cancelled: true })
    expect(await holderOf()).toBe(second)
    expect((await claimOne(bed.engine)).jobId).toBe(second)
  })

  test('gets the lock from the sweep when the cancel is rolled back', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const only = await submitted(bed.engine.submit(work, {}, waiting))
    const cancelling = await bed.hold((db) =>
      db.query('lock', sql`select job_id from ${db.t.liveJobs} where job_id = ${only} for update`),
    )
    await bed.engine.complete(holder, null)
    await cancelling.rollback()
    expect([await holderOf(), await waits(only)]).toEqual([undefined, true])
    expect((await bed.engine.explain(only))?.message).toContain('the next sweep hands it over')
    expect(await bed.engine.sweep()).toMatchObject({ handedLocks: ['l'] })
    expect(await holderOf()).toBe(only)
    expect(await bed.engine.sweep()).toMatchObject({ handedLocks: [] })
  })

  test('and has just been handed the lock frees it for the next', async () => {
    await submitted(bed.engine.submit(work, {}, waiting))
    const holder = await claimOne(bed.engine)
    const first = await submitted(bed.engine.submit(work, {}, waiting))
    const second = await submitted(bed.engine.submit(work, {}, waiting))
    const ending = await bed.hold(completing(holder))
    const cancelled = bed.engine.cancel(first)
    await bed.blocked()
    await ending.commit()
    expect(await cancelled).toMatchObject({ cancelled: true })
    expect(await holderOf()).toBe(second)
  })
})

test('crossing batches that wait for the same locks all go in, and every job runs once', async () => {
  const keys = Array.from({ length: 8 }, (_, n) => `key ${n}`)
  const batch = (engine: Engine, lockKeys: string[]) =>
    engine.submitMany(
      work,
      lockKeys.map((lockKey) => ({ payload: {}, options: { lockKey, onLocked: 'wait' as const } })),
    )
  const answers = await Promise.all([
    batch(bed.engine, keys),
    batch(other, keys.toReversed()),
    batch(bed.engine, keys.toReversed()),
    batch(other, keys),
  ])
  expect(answers.flat().filter((answer) => answer.submitted)).toHaveLength(32)
  for (let round = 0; round < 4; round += 1) {
    const attempts = await bed.engine.claim({ limit: 100 })
    expect(attempts.map(({ claimed }) => claimed.lockKey ?? '').sort()).toEqual(keys)
    await Promise.all(attempts.map((attempt, nth) => (nth % 2 === 0 ? other : bed.engine).complete(attempt, null)))
  }
  expect(await bed.engine.claim({ limit: 100 })).toEqual([])
})

test('a lock that is freed without the engine, as the release before does, is handed over all the same', async () => {
  const holder = await submitted(bed.engine.submit(work, {}, waiting))
  const next = await submitted(bed.engine.submit(work, {}, waiting))
  await bed.query(
    `with gone as (delete from fencepost.live_jobs where job_id = $1 returning job_id)
                   delete from fencepost.resource_locks where job_id = $1`,
    [holder],
  )
  expect(await holderOf()).toBe(next)
})

test('a job that waits in a transaction of the caller is in line when that commits', async () => {
  const holder = await submitted(bed.engine.submit(work, {}, waiting))
  const client = new pg.Client({ connectionString: bed.url })
  await client.connect()
  try {
    await client.query('begin')
    const answer = await bed.engine.submit(work, {}, { ...waiting, client })
    expect(answer).toMatchObject({ submitted: true, waitsForLock: true })
    const cancelled = bed.engine.cancel(holder)
    await bed.blocked()
    await client.query('commit')
    await cancelled
    expect(await holderOf()).toBe(answer.submitted ? answer.jobId : '')
  } finally {
    await client.end()
  }
})
