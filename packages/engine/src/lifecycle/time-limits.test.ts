import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { child, defer } from './defer.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const eventsOf = async (jobId: string) => (await bed.engine.events(jobId)).map(({ event }) => event)
const leaseMs = 30_000 // of work

describe('an attempt past its timeout', () => {
  test('is renewed for a minute, and then failed by the sweep, however often it is renewed', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { timeoutMs: 60_000, maxAttempts: 3 }))
    const attempt = await claimOne(bed.engine)
    await bed.advance(50_000)
    await bed.engine.renew([attempt])
    await bed.advance(20_000)
    for (let passed = 70_000; passed <= 110_000; passed += 10_000) {
      expect(await bed.engine.renew([attempt])).toEqual({ lost: [] })
      expect(await bed.engine.sweep()).toMatchObject({ timedOut: [] })
      await bed.advance(10_000)
    }
    await bed.engine.renew([attempt])
    expect(await bed.engine.sweep()).toMatchObject({ timedOut: [jobId], expired: [], failed: [] })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'timed_out' })
    expect(await eventsOf(jobId)).toEqual(['job.submitted', 'job.started', 'job.timed_out', 'job.failed'])
    expect((await bed.engine.complete(attempt, 'late')).settled).toBe(false)
  })

  test('whose worker died before is tried again', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { timeoutMs: 1_000 }))
    await claimOne(bed.engine)
    await bed.advance(leaseMs + 1)
    expect(await bed.engine.sweep()).toMatchObject({ timedOut: [], expired: [jobId] })
  })

  test.each([{ lockKey: 'l' }, { slotKey: 's' }])(
    'keeps %o while its worker renews it, and no longer',
    async (keys) => {
      const jobId = await submitted(bed.engine.submit(work, {}, { timeoutMs: 1_000, ...keys }))
      const attempt = await claimOne(bed.engine)
      for (let passed = 0; passed < 70_000; passed += 10_000) {
        await bed.advance(10_000)
        await bed.engine.renew([attempt])
      }
      expect(await bed.engine.sweep()).toMatchObject({ timedOut: [jobId] })
      await bed.engine.renew([attempt])
      const next = await bed.engine.submit(work, {}, keys)
      expect(next.submitted).toBe(keys.lockKey === undefined)
      expect(await bed.engine.claim()).toEqual([])
      await bed.advance(leaseMs + 1)
      if (!next.submitted) await submitted(bed.engine.submit(work, {}, keys))
      expect(await bed.engine.claim()).toHaveLength(1)
    },
  )

  test('that completes while the sweep is about to fail it has completed', async () => {
    const gate = new Gate()
    const other = await bed.open({}, gate)
    const jobId = await submitted(bed.engine.submit(work, {}, { timeoutMs: 1_000 }))
    const attempt = await claimOne(bed.engine)
    await bed.advance(2_000)
    await bed.engine.renew([attempt])
    await bed.advance(61_000)
    const stop = gate.stopAt('sweep.time_out')
    const sweeping = other.sweep()
    await stop.reached
    expect(await bed.engine.complete(attempt, 'in time')).toEqual({ settled: true })
    stop.go()
    expect(await sweeping).toMatchObject({ timedOut: [] })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed' })
  })
})

describe('a job that was not started in time', () => {
  test('is never claimed, and is failed by the sweep', async () => {
    const startBy = new Date(Date.now() - 1_000)
    const jobId = await submitted(bed.engine.submit(work, {}, { startBy, lockKey: 'l' }))
    const slotted = await submitted(bed.engine.submit(work, {}, { startWithinMs: 1_000, slotKey: 's' }))
    const plain = await submitted(bed.engine.submit(work, {}, { startWithinMs: 1_000 }))
    await bed.advance(1_001)
    expect(await bed.engine.claimJobs([jobId, slotted, plain])).toEqual([])
    expect((await bed.engine.explain(plain))?.reasons[0]).toMatchObject({ reason: 'start_by_passed' })
    expect(await bed.engine.claim({ limit: 10 })).toEqual([]) // it sweeps
    const jobs = await bed.engine.getMany([jobId, slotted, plain])
    for (const job of jobs.values()) expect(job).toMatchObject({ status: 'failed', errorCode: 'expired_unstarted' })
    expect(await eventsOf(plain)).toEqual(['job.submitted', 'job.expired_unstarted', 'job.failed'])
    expect((await bed.engine.submit(work, {}, { lockKey: 'l' })).submitted).toBe(true)
  })

  test('is not meant when it has started once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { startWithinMs: 60_000 }))
    await bed.engine.release(await claimOne(bed.engine), 'stopping')
    await bed.advance(120_000)
    expect(await bed.engine.sweep()).toMatchObject({ unstarted: [] })
    expect((await claimOne(bed.engine)).jobId).toBe(jobId)
  })

  test('closes its parent', async () => {
    const parent = await submitted(bed.engine.submit(work, {}))
    await bed.engine.complete(await claimOne(bed.engine), defer([child(work, {}, { startWithinMs: 10 })]))
    await bed.advance(20)
    await bed.engine.sweep()
    expect(await bed.engine.get(parent)).toMatchObject({ status: 'failed' })
  })

  test('that is claimed while the sweep is about to fail it runs', async () => {
    const gate = new Gate()
    const other = await bed.open({}, gate)
    const jobId = await submitted(bed.engine.submit(work, {}, { startWithinMs: 1_000 }))
    await bed.advance(1_001)
    const stop = gate.stopAt('sweep.unstarted')
    const sweeping = other.sweep()
    await stop.reached
    await bed.advance(-1_001) // as if the claim had been a moment earlier
    expect((await claimOne(bed.engine)).jobId).toBe(jobId)
    await bed.advance(1_001)
    stop.go()
    expect(await sweeping).toMatchObject({ unstarted: [] })
  })

  test('cannot be given two times', async () => {
    const both = { startBy: new Date(), startWithinMs: 1 }
    await expect(bed.engine.submit(work, {}, both)).rejects.toMatchObject({ code: 'options_invalid' })
  })
})
