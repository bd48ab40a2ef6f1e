import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/errors.ts'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Engine } from '../../src/engine.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed, type Held } from '../bed.ts'
import { openStoppable } from './mid-statement.ts'
import { completing, expiring, renewing } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
const gate = new Gate()
let slow: Engine
let halting: { engine: Engine; stop: () => Promise<Held<unknown>> }
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
  slow = await bed.open({}, { pausePoint: gate.pausePoint })
  halting = await openStoppable(bed)
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const nothing = {
  expired: [],
  failed: [],
  timedOut: [],
  unstarted: [],
  closed: [],
  freedLocks: [],
  handedLocks: [],
}

/** A running attempt whose lease has lapsed. */
async function silent(maxAttempts = 3): Promise<Attempt> {
  await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's', maxAttempts }))
  const attempt = await claimOne(other)
  await bed.advance(60_000)
  return attempt
}

// With attempts left an expired job goes back, with none left it fails: two statements, raced alike.
describe.each([
  ['with attempts left', 3],
  ['on its last attempt', 1],
])('a completion against the sweep, %s', (_name, maxAttempts) => {
  test('the sweep skips a row that is being completed, and does not wait', async () => {
    const attempt = await silent(maxAttempts)
    const held = await bed.hold(completing(attempt))
    expect(await bed.engine.sweep()).toEqual(nothing)
    await held.commit()
    expect(await bed.engine.sweep()).toEqual(nothing)
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'completed', attemptId: attempt.attemptId })
  })

  test('the next sweep takes what a completion that rolled back has left', async () => {
    const attempt = await silent(maxAttempts)
    const held = await bed.hold(completing(attempt))
    expect(await bed.engine.sweep()).toEqual(nothing)
    await held.rollback()
    const swept = await bed.engine.sweep()
    expect([...(swept?.expired ?? []), ...(swept?.failed ?? [])]).toEqual([attempt.jobId])
  })

  test('a completion that lands between what the sweep reads and what it writes stands', async () => {
    const attempt = await silent(maxAttempts)
    const stopped = await halting.stop()
    const swept = halting.engine.sweep()
    await bed.blocked()
    expect(await other.complete(attempt, { done: true })).toEqual({ settled: true })
    const after = await tableRows(bed)
    await stopped.commit()
    expect(await swept).toEqual(nothing)
    expect(await tableRows(bed)).toEqual(after)
  })

  test('a completion that comes while the sweep is under way waits, and finds its fence lost', async () => {
    const attempt = await silent(maxAttempts)
    const sweeping = await bed.hold(expiring())
    const late = other.complete(attempt, { late: true })
    await bed.blocked()
    await sweeping.commit()
    expect(await late).toEqual({ settled: false, why: 'fence_lost' })
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({
      status: maxAttempts === 1 ? 'failed' : 'pending',
      errorCode: maxAttempts === 1 ? 'lease_expired' : undefined,
      result: null,
    })
  })

  test('a failure that comes while the sweep is under way waits, and finds its fence lost', async () => {
    const attempt = await silent(maxAttempts)
    const sweeping = await bed.hold(expiring())
    const late = other.fail(attempt, new PermanentError('late'))
    await bed.blocked()
    await sweeping.commit()
    expect(await late).toEqual({ settled: false, why: 'fence_lost' })
    expect((await bed.engine.get(attempt.jobId))?.error).not.toBe('late')
  })
})

describe('a renewal against the sweep', () => {
  test('the sweep skips a row that is being renewed', async () => {
    const attempt = await silent()
    const held = await bed.hold(renewing(attempt.claimed))
    expect(await bed.engine.sweep()).toEqual(nothing)
    await held.commit()
    expect(await bed.engine.sweep()).toEqual(nothing)
    expect(await other.renew([attempt])).toEqual({ lost: [] })
    expect(await other.complete(attempt)).toEqual({ settled: true })
  })

  test('a renewal that lands between what the sweep reads and what it writes keeps the attempt', async () => {
    const attempt = await silent()
    const stopped = await halting.stop()
    const swept = halting.engine.sweep()
    await bed.blocked()
    expect(await other.renew([attempt])).toEqual({ lost: [] })
    const after = await tableRows(bed)
    await stopped.commit()
    expect(await swept).toEqual(nothing)
    expect(await tableRows(bed)).toEqual(after)
  })

  test('a renewal that comes after the sweep is told that the fence is lost, and keeps nothing', async () => {
    const attempt = await silent()
    await bed.engine.sweep()
    const before = await tableRows(bed)
    expect(await other.renew([attempt])).toEqual({ lost: [attempt] })
    expect(attempt.signal.reason).toBe('fence_lost')
    expect(await tableRows(bed, { events: ['job.fence_rejected'] })).toEqual(before)
  })

  test('a renewal that meets the sweep half-way changes nothing, and the next one is told', async () => {
    const attempt = await silent()
    const sweeping = await bed.hold(expiring())
    const late = other.renew([attempt])
    await sweeping.commit()
    expect(sweeping.value).toMatchObject([{ job_id: attempt.jobId }])
    await late
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'pending', leaseUntil: undefined })
    expect(await tableRows(bed)).toMatchObject({
      resource_locks: [{ attempt_id: null, expires_at: null }],
      slots: [{ attempt_id: null, held_until: null }],
    })
    expect(await other.renew([attempt])).toEqual({ lost: [attempt] })
  })

  test('one attempt that is being settled does not hold up the renewal of the others', async () => {
    await bed.engine.submitMany(work, [{ payload: {} }, { payload: {} }, { payload: {} }])
    const attempts = await other.claim({ limit: 3 })
    await bed.advance(20_000)
    const held = await bed.hold(completing(...attempts.slice(1, 2)))
    expect(await other.renew(attempts)).toEqual({ lost: [] })
    await held.rollback()
    await bed.advance(20_000)
    expect(await bed.engine.sweep()).toMatchObject({ expired: [attempts[1]?.jobId] })
  })
})

describe('two sweeps', () => {
  test('one at a time: the second does not wait, and says so', async () => {
    const attempt = await silent()
    const sweeping = await bed.hold(expiring())
    expect(await bed.engine.sweep()).toBeUndefined()
    await sweeping.commit()
    expect(sweeping.value).toMatchObject([{ job_id: attempt.jobId }])
    expect(await bed.engine.sweep()).toEqual(nothing)
  })

  test('a process that stops between two statements of its sweep keeps nobody from sweeping', async () => {
    const attempt = await silent()
    const stop = gate.stopAt('sweep.expire')
    const stopped = slow.sweep()
    await stop.reached
    expect(await bed.engine.sweep()).toMatchObject({ expired: [attempt.jobId] })
    stop.go()
    expect(await stopped).toEqual(nothing)
  })

  test('one that is told how fresh a sweep may be does nothing within that time', async () => {
    expect(await bed.engine.sweep()).toEqual(nothing)
    const attempt = await silent() // which takes a minute
    expect(await bed.engine.sweep({ unlessWithinMs: 65_000 })).toBeUndefined()
    expect(await bed.engine.sweep({ unlessWithinMs: 59_000 })).toMatchObject({ expired: [attempt.jobId] })
  })

  test('however many leases have passed, one sweep takes them all', async () => {
    await bed.engine.submitMany(
      work,
      Array.from({ length: 4_500 }, () => ({ payload: {} })),
    )
    await other.claim({ limit: 4_500 })
    await bed.advance(60_000)
    expect((await bed.engine.sweep())?.expired).toHaveLength(4_500)
  })

  test('a claim that read its job as running when the sweep had not yet put it back finds nothing', async () => {
    const attempt = await silent()
    const sweeping = await bed.hold(expiring())
    expect(await other.claim()).toEqual([])
    expect(await other.claimJob(attempt.jobId)).toEqual({ claimed: false })
    await sweeping.commit()
    expect((await other.claimJob(attempt.jobId)).claimed).toBe(true)
  })

  test('a claim that read its job as pending before another claim committed finds nothing', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const stopped = await halting.stop()
    const late = halting.engine.claimJob(jobId)
    await bed.blocked()
    const winner = await claimOne(other)
    await stopped.commit()
    expect(await late).toEqual({ claimed: false })
    expect(await bed.engine.get(jobId)).toMatchObject({ attempts: 1, attemptId: winner.attemptId })
  })
})
