import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Engine } from '../../src/engine.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { freeing, renewing, submitting } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

/** An attempt whose job was cancelled while it ran; its lock is still its own. */
async function cancelledWhileRunning(): Promise<Attempt> {
  await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
  const attempt = await claimOne(bed.engine)
  expect(await other.cancel(attempt.jobId)).toMatchObject({ cancelled: true })
  return attempt
}

const holderOf = async () =>
  ((await tableRows(bed)).resource_locks ?? []).map(({ job_id: jobId }) => String(jobId).replaceAll('-', ''))

describe('the lock of a job that was cancelled while it ran', () => {
  test('stays with the attempt until it lets go', async () => {
    const attempt = await cancelledWhileRunning()
    const { jobId, attemptId } = attempt
    expect(await other.submit(work, {}, { lockKey: 'l' })).toEqual({
      submitted: false,
      why: 'locked',
      lockKey: 'l',
      holder: { jobId, attemptId },
    })
    expect(await bed.engine.sweep()).toMatchObject({ freedLocks: [] })
    await attempt.letGo()
    expect(await holderOf()).toEqual([])
    await submitted(other.submit(work, {}, { lockKey: 'l' }))
  })

  test('stays with the attempt until its lease has lapsed', async () => {
    await cancelledWhileRunning()
    await bed.advance(29_000)
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ submitted: false })
    await bed.advance(2000)
    const next = await submitted(other.submit(work, {}, { lockKey: 'l' }))
    expect(await holderOf()).toEqual([next])
  })

  test('stays with the attempt while it renews, although its renewals say that the fence is lost', async () => {
    const attempt = await cancelledWhileRunning()
    for (let n = 0; n < 3; n += 1) {
      await bed.advance(20_000)
      expect(await bed.engine.renew([attempt])).toEqual({ lost: [attempt] })
      expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ submitted: false, why: 'locked' })
      expect(await bed.engine.sweep()).toMatchObject({ freedLocks: [] })
    }
    await bed.advance(31_000)
    await submitted(other.submit(work, {}, { lockKey: 'l' }))
  })

  test('once taken over is not given up by the attempt that had it', async () => {
    const attempt = await cancelledWhileRunning()
    await bed.advance(31_000)
    const next = await submitted(other.submit(work, {}, { lockKey: 'l' }))
    const before = await tableRows(bed)
    await attempt.letGo()
    expect(await bed.engine.renew([attempt])).toEqual({ lost: [attempt] })
    expect(await tableRows(bed, { events: ['job.fence_rejected'] })).toEqual(before)
    expect((await other.claimJob(next)).claimed).toBe(true)
  })
})

describe('a lapsed lock that two want', () => {
  test('two submissions: the second waits, and is told the first when that commits', async () => {
    await cancelledWhileRunning()
    await bed.advance(31_000)
    const held = await bed.hold(submitting({ lockKey: 'l' }))
    const late = other.submit(work, {}, { lockKey: 'l' })
    await bed.blocked()
    await held.commit()
    const [first] = held.value
    if (!first?.submitted) throw new Error('not submitted')
    expect(await late).toMatchObject({ why: 'locked', holder: { jobId: first.jobId } })
    expect(await holderOf()).toEqual([first.jobId])
  })

  test('two submissions: the second waits, and takes it over when the first rolls back', async () => {
    await cancelledWhileRunning()
    await bed.advance(31_000)
    const held = await bed.hold(submitting({ lockKey: 'l' }))
    const late = other.submit(work, {}, { lockKey: 'l' })
    await bed.blocked()
    await held.rollback()
    const next = await submitted(late)
    expect(await holderOf()).toEqual([next])
  })

  test('many submissions at once: one gets it', async () => {
    await cancelledWhileRunning()
    await bed.advance(31_000)
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? bed.engine : other).submit(work, {}, { lockKey: 'l' })),
    )
    expect(answers.filter((answer) => answer.submitted)).toHaveLength(1)
    expect((await tableRows(bed)).live_jobs).toHaveLength(1)
  })

  test('a renewal that comes first keeps it: the submission waits and is told', async () => {
    const attempt = await cancelledWhileRunning()
    await bed.advance(31_000)
    const held = await bed.hold(renewing(attempt.claimed))
    const late = other.submit(work, {}, { lockKey: 'l' })
    await bed.blocked()
    await held.commit()
    expect(await late).toMatchObject({ why: 'locked', holder: { attemptId: attempt.attemptId } })
  })

  test('a renewal that comes second keeps nothing', async () => {
    const attempt = await cancelledWhileRunning()
    await bed.advance(31_000)
    const held = await bed.hold(submitting({ lockKey: 'l' }))
    const late = bed.engine.renew([attempt])
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ lost: [attempt] })
    expect(await tableRows(bed)).toMatchObject({ resource_locks: [{ attempt_id: null, expires_at: null }] })
  })
})

describe('a lapsed lock that the sweep frees', () => {
  test('while a submission takes it over: the submission’s lock survives', async () => {
    await cancelledWhileRunning()
    await bed.advance(31_000)
    const held = await bed.hold(submitting({ lockKey: 'l' }))
    expect(await other.sweep()).toMatchObject({ freedLocks: [] })
    await held.commit()
    const [next] = held.value
    if (!next?.submitted) throw new Error('not submitted')
    expect(await other.sweep()).toMatchObject({ freedLocks: [] })
    expect(await holderOf()).toEqual([next.jobId])
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ holder: { jobId: next.jobId } })
  })

  test('while a submission that rolls back wanted it: it is free', async () => {
    await cancelledWhileRunning()
    await bed.advance(31_000)
    const held = await bed.hold(submitting({ lockKey: 'l' }))
    expect(await other.sweep()).toMatchObject({ freedLocks: [] })
    await held.rollback()
    expect(await other.sweep()).toMatchObject({ freedLocks: ['l'] })
    expect(await holderOf()).toEqual([])
  })

  test('while the cancelled attempt renews it: it stays', async () => {
    const attempt = await cancelledWhileRunning()
    await bed.advance(31_000)
    const held = await bed.hold(renewing(attempt.claimed))
    expect(await other.sweep()).toMatchObject({ freedLocks: [] })
    await held.commit()
    expect(await other.sweep()).toMatchObject({ freedLocks: [] })
    expect(await holderOf()).toEqual([attempt.jobId])
  })

  test('before a submission that waited for it: the submission gets it', async () => {
    await cancelledWhileRunning()
    await bed.advance(31_000)
    const sweeping = await bed.hold(freeing())
    const late = other.submit(work, {}, { lockKey: 'l' })
    await bed.blocked()
    await sweeping.commit()
    expect(sweeping.value).toEqual(['l'])
    const next = await submitted(late)
    expect(await holderOf()).toEqual([next])
  })

  test('never while its job lives: not pending, not running with a lapsed lease, not put back', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
    expect(await other.sweep()).toMatchObject({ freedLocks: [] })
    await claimOne(bed.engine)
    await bed.advance(31_000)
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ why: 'locked', holder: { jobId } })
    expect(await other.sweep()).toMatchObject({ expired: [jobId], freedLocks: [] })
    expect(await other.submit(work, {}, { lockKey: 'l' })).toMatchObject({ why: 'locked', holder: { jobId } })
  })
})
