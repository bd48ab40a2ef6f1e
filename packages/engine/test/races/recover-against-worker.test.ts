import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Engine } from '../../src/engine.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { completing, recovering } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

const staleMs = 1_800_000

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

/** An attempt that was claimed long ago and whose worker is alive: it has just renewed. */
async function stuck(keys: { lockKey?: string; slotKey?: string } = {}): Promise<Attempt> {
  await submitted(bed.engine.submit(work, {}, keys))
  const attempt = await claimOne(bed.engine)
  await bed.advance(staleMs + 60_000)
  expect(await bed.engine.renew([attempt])).toEqual({ lost: [] })
  return attempt
}

describe('recover against complete', () => {
  test('a completion that comes first wins, and the recovery that waited is told', async () => {
    const attempt = await stuck()
    const held = await bed.hold(completing(attempt))
    const late = other.recover(attempt.jobId)
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ recovered: false, why: 'not_running', status: 'completed' })
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'completed' })
  })

  test('a completion that rolls back lets the recovery through', async () => {
    const attempt = await stuck()
    const held = await bed.hold(completing(attempt))
    const late = other.recover(attempt.jobId)
    await bed.blocked()
    await held.rollback()
    expect(await late).toEqual({ recovered: true })
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('a recovery that comes first wins: the completion waits and finds its fence lost', async () => {
    const attempt = await stuck()
    const held = await bed.hold(recovering(attempt.jobId, staleMs))
    const late = bed.engine.complete(attempt, { late: true })
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ settled: false, why: 'fence_lost' })
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'pending', attempts: 0, result: null })
  })

  test('a recovery that rolls back lets the completion through', async () => {
    const attempt = await stuck()
    const held = await bed.hold(recovering(attempt.jobId, staleMs))
    const late = bed.engine.complete(attempt)
    await bed.blocked()
    await held.rollback()
    expect(await late).toEqual({ settled: true })
  })

  test('a recovery that waited for another one finds the job pending', async () => {
    const attempt = await stuck()
    const held = await bed.hold(recovering(attempt.jobId, staleMs))
    const late = other.recover(attempt.jobId)
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ recovered: false, why: 'not_running', status: 'pending' })
  })

  test('a recovery does not touch the claim that came after the one it was meant for', async () => {
    const attempt = await stuck()
    await other.recover(attempt.jobId)
    const next = await claimOne(other)
    expect(await slow.recover(attempt.jobId)).toMatchObject({ recovered: false, why: 'not_stale', staleMs })
    expect(await other.complete(next)).toEqual({ settled: true })
  })
})

describe('recover refuses', () => {
  test('a claim that is younger than the stale timeout, to the millisecond it is set to', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(bed.engine)
    expect(await other.recover(jobId)).toMatchObject({ recovered: false, why: 'not_stale', staleMs })
    await bed.advance(staleMs - 60_000)
    const before = await tableRows(bed)
    expect(await other.recover(jobId)).toMatchObject({ recovered: false, why: 'not_stale' })
    expect(await tableRows(bed)).toEqual(before)
    await bed.advance(61_000)
    expect(await other.recover(jobId)).toEqual({ recovered: true })
    expect(await bed.engine.complete(attempt)).toEqual({ settled: false, why: 'fence_lost' })
  })

  test('a parent that waits for its children, however long', async () => {
    const parentId = await submitted(bed.engine.submit(work, {}))
    await bed.engine.complete(await claimOne(bed.engine), defer([child(work, {})]))
    await bed.advance(2 * staleMs)
    expect(await other.recover(parentId)).toEqual({ recovered: false, why: 'waiting_for_children' })
  })

  test('a job that becomes a waiting parent while it waits for it', async () => {
    const attempt = await stuck()
    const stop = gate.stopAt('defer.commit')
    const deferral = slow.complete(attempt, defer([child(work, {})]))
    await stop.reached
    const late = other.recover(attempt.jobId)
    await bed.blocked()
    stop.go()
    await deferral
    expect(await late).toEqual({ recovered: false, why: 'waiting_for_children' })
  })
})

describe.each([
  ['lock', { lockKey: 'l' }],
  ['slot', { slotKey: 's' }],
])('a recovered job with a %s whose old worker is still alive', (_name, keys) => {
  const claims = async (jobId: string) => [(await other.claim()).length, (await other.claimJob(jobId)).claimed]

  test('is not claimed until that worker lets go', async () => {
    const attempt = await stuck(keys)
    expect(await other.recover(attempt.jobId)).toEqual({ recovered: true })
    expect(await claims(attempt.jobId)).toEqual([0, false])
    await attempt.letGo()
    expect(await other.claim()).toHaveLength(1)
  })

  test('is not claimed until that worker’s last lease has lapsed', async () => {
    const attempt = await stuck(keys)
    await other.recover(attempt.jobId)
    await bed.advance(29_000)
    expect(await claims(attempt.jobId)).toEqual([0, false])
    await bed.advance(2000)
    const next = await claimOne(other)
    const before = await tableRows(bed)
    await attempt.letGo() // the lock and slot are the next attempt's now
    expect(await tableRows(bed)).toEqual(before)
    expect(await other.complete(next)).toEqual({ settled: true })
  })

  test('is not claimed while that worker renews, although its renewals say that the fence is lost', async () => {
    const attempt = await stuck(keys)
    await other.recover(attempt.jobId)
    for (let n = 0; n < 3; n += 1) {
      await bed.advance(20_000)
      expect(await bed.engine.renew([attempt])).toEqual({ lost: [attempt] })
      expect(await claims(attempt.jobId)).toEqual([0, false])
    }
    expect(attempt.signal.reason).toBe('fence_lost')
    expect(await bed.engine.complete(attempt)).toEqual({ settled: false, why: 'fence_lost' }) // and lets go
    expect(await other.claim()).toHaveLength(1)
  })

  test('keeps the lock and slot with that worker when it is cancelled before it was claimed again', async () => {
    const attempt = await stuck(keys)
    await other.recover(attempt.jobId)
    await other.cancel(attempt.jobId)
    const again = await other.submit(work, {}, keys)
    if ('lockKey' in keys) {
      expect(again).toMatchObject({ why: 'locked', holder: { attemptId: attempt.attemptId } })
      await attempt.letGo()
      await submitted(other.submit(work, {}, keys))
    } else {
      expect(await other.claim()).toEqual([])
      await attempt.letGo()
    }
    expect(await other.claim()).toHaveLength(1)
  })
})

test('a recovered job without lock or slot is claimed at once, and its old worker is told at its next renewal', async () => {
  const attempt = await stuck()
  await other.recover(attempt.jobId)
  const next = await claimOne(other)
  expect(next.jobId).toBe(attempt.jobId)
  expect(await bed.engine.renew([attempt])).toEqual({ lost: [attempt] })
  expect(await other.renew([next])).toEqual({ lost: [] })
})

test('a worker that lets go of a recovered job while it is cancelled leaves nothing that the sweep does not free', async () => {
  const attempt = await stuck({ lockKey: 'l' })
  await other.recover(attempt.jobId)
  const stop = gate.stopAt('cancel.commit')
  const cancelled = slow.cancel(attempt.jobId)
  await stop.reached
  await attempt.letGo()
  stop.go()
  expect(await cancelled).toMatchObject({ cancelled: true })
  await bed.engine.sweep()
  await submitted(other.submit(work, {}, { lockKey: 'l' }))
  expect(await other.claim()).toHaveLength(1)
})
