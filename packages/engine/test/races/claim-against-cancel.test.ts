import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { letGo } from '../../src/lifecycle/release.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { claiming, completing, expiring, releasing, renewing } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
const gate = new Gate()
let slow: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
  slow = await bed.open({}, { pausePoint: gate.pausePoint })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const everything = { lockKey: 'l', slotKey: 's', dedupKey: 'd' }
const heldThings = async () => {
  const { resource_locks: locks, slots } = await tableRows(bed)
  return { locks, slots }
}

describe('a claim that comes first', () => {
  test('is waited for, and the running job is cancelled', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const held = await bed.hold(claiming())
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ cancelled: true, jobIds: [jobId] })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'cancelled', attempts: 1, attemptId: undefined })
    const fence = { jobId, attemptId: held.value[0]?.attemptId ?? '' }
    expect((await bed.hold(completing(fence))).value).toEqual([])
  })

  test('and rolls back: the pending job is cancelled, and its lock is free at once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, everything))
    const held = await bed.hold(claiming())
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.rollback()
    expect(await late).toEqual({ cancelled: true, jobIds: [jobId] })
    expect(await heldThings()).toEqual({ locks: [], slots: [] })
  })

  test('keeps its lock and slot from everyone else until it lets go', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, everything))
    const held = await bed.hold(claiming())
    const [claimed] = held.value
    if (claimed === undefined) throw new Error('nothing to claim')
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.commit()
    await late
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({
      why: 'locked',
      holder: { jobId, attemptId: claimed.attemptId },
    })
    const next = await submitted(other.submit(work, {}, { slotKey: 's' }))
    expect(await other.claimJob(next)).toEqual({ claimed: false })
    await (await bed.hold((db) => letGo(db, claimed))).commit()
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ submitted: true })
    expect((await other.claimJob(next)).claimed).toBe(true)
  })

  test('keeps its lock and slot for as long as it renews', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, everything))
    const held = await bed.hold(claiming())
    const [claimed] = held.value
    if (claimed === undefined) throw new Error('nothing to claim')
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.commit()
    await late
    const next = await submitted(other.submit(work, {}, { slotKey: 's' }))
    for (let n = 0; n < 2; n += 1) {
      await bed.advance(20_000)
      const renewed = await bed.hold(renewing(claimed))
      await renewed.commit()
      expect(renewed.value).toEqual([{ jobId, attemptId: claimed.attemptId }])
    }
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ submitted: false, why: 'locked' })
    expect(await other.claimJob(next)).toEqual({ claimed: false })
  })
})

describe('a cancel that comes first', () => {
  test('is not waited for: the claim finds nothing', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, everything))
    const stop = gate.stopAt('cancel.commit')
    const cancelled = slow.cancel(jobId)
    await stop.reached
    expect(await other.claim()).toEqual([])
    expect(await other.claimJob(jobId)).toEqual({ claimed: false })
    stop.go()
    expect(await cancelled).toEqual({ cancelled: true, jobIds: [jobId] })
    expect(await other.claimJob(jobId)).toEqual({ claimed: false })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'cancelled', attempts: 0, startedAt: undefined })
    expect(await heldThings()).toEqual({ locks: [], slots: [] })
  })

  test('a second cancel waits for it and is told that the job is cancelled', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const stop = gate.stopAt('cancel.commit')
    const first = slow.cancel(jobId)
    await stop.reached
    const second = other.cancel(jobId)
    await bed.blocked()
    stop.go()
    expect(await first).toMatchObject({ cancelled: true })
    expect(await second).toEqual({ cancelled: false, why: 'finished', status: 'cancelled' })
    const events = (await bed.engine.events(jobId)).filter(({ event }) => event === 'job.cancelled')
    expect(events).toHaveLength(1)
  })
})

describe('a job that is just being put back', () => {
  test('a cancel that waits for its release finds it pending, and frees its lock and slot at once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, everything))
    const held = await bed.hold(releasing(await claimOne(bed.engine)))
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.commit()
    expect(await late).toMatchObject({ cancelled: true })
    expect(await heldThings()).toMatchObject({ locks: [], slots: [{ attempt_id: null, held_until: null }] })
    expect(await other.submit(work, {}, everything)).toMatchObject({ submitted: true })
    expect(await other.claim()).toHaveLength(1)
  })

  test('a cancel that waits for its expiry finds it pending, and frees its lock and slot at once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, everything))
    await claimOne(bed.engine)
    await bed.advance(60_000)
    const held = await bed.hold(expiring())
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.commit()
    expect(held.value).toMatchObject([{ job_id: jobId }])
    expect(await late).toMatchObject({ cancelled: true })
    expect(await heldThings()).toMatchObject({ locks: [], slots: [{ attempt_id: null, held_until: null }] })
  })

  test('a claim that follows a release right away is what a waiting cancel then cancels', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, everything))
    const attempt = await claimOne(bed.engine)
    const held = await bed.hold(async (db) => {
      await releasing(attempt)(db)
      return claiming()(db)
    })
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.commit()
    expect(await late).toMatchObject({ cancelled: true })
    const attemptId = held.value[0]?.attemptId
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ why: 'locked', holder: { attemptId } })
    await attempt.letGo() // not its lock any more
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ why: 'locked', holder: { attemptId } })
  })
})
