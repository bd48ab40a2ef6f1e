import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { setDrain } from '../../src/lifecycle/drain.ts'
import { Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { claiming } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

describe('drain set while claims run', () => {
  test('a claim that has begun lands, the next one finds nothing', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await submitted(bed.engine.submit(work, {}))
    const held = await bed.hold(claiming())
    await bed.engine.setDrain('all')
    expect(await other.claim({ limit: 10 })).toEqual([])
    await held.commit()
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running' })
    await bed.engine.setDrain('off')
    expect(await other.claim({ limit: 10 })).toHaveLength(1)
  })

  test('what a drained engine runs is settled, retried and swept as ever', async () => {
    await bed.engine.submitMany(work, [{ payload: {} }, { payload: {} }, { payload: {} }])
    const [one, two, three] = await other.claim({ limit: 3 })
    if (one === undefined || two === undefined || three === undefined) throw new Error('nothing to claim')
    await bed.engine.setDrain('all')
    expect(await other.complete(one)).toEqual({ settled: true })
    expect(await other.release(two, 'going away')).toEqual({ settled: true })
    await bed.advance(60_000)
    expect(await bed.engine.sweep()).toMatchObject({ expired: [three.jobId] })
    expect(await other.claim({ limit: 3 })).toEqual([])
    expect(await other.claimJob(two.jobId)).toEqual({ claimed: false })
  })

  test('a drain that is not committed stops nobody', async () => {
    const held = await bed.hold((db) => setDrain(db, 'all', undefined))
    const jobId = await submitted(bed.engine.submit(work, {}))
    expect((await other.claimJob(jobId)).claimed).toBe(true)
    await held.commit()
    expect(await bed.engine.submit(work, {})).toEqual({ submitted: false, why: 'drained' })
  })

  test('a keyed submission that drain overtakes after its first look is refused, and its lock is free', async () => {
    const gate = new Gate()
    const slow = await bed.open({}, { pausePoint: gate.pausePoint })
    const stop = gate.stopAt('submit.jobs')
    const answer = slow.submit(work, {}, { lockKey: 'a' })
    await stop.reached
    await bed.engine.setDrain('submissions')
    stop.go()
    expect(await answer).toEqual({ submitted: false, why: 'drained' })
    expect(await tableRows(bed)).toMatchObject({ live_jobs: [], resource_locks: [] })
  })
})
