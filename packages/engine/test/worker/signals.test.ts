import { describe, expect, test } from 'vitest'
import { sql } from '../../src/database/sql.ts'
import { submitted } from '../bed.ts'
import { busy, gated, gatedApart, hanging, stubborn } from './programs/operations.ts'
import { expectGone, isAlive, workerBed } from './worker-bed.ts'

const bed = workerBed()
const locks = () => bed.query('select job_id, attempt_id from fencepost.resource_locks')
const held = async (jobId: string, event: string) =>
  expect.poll(async () => (await bed.events(jobId)).map((one) => one.event), { timeout: 15_000 }).toContain(event)

describe('a signal, while a handler blocks its thread for ever', () => {
  /** Runs a worker until the job has begun, sends it the signal, and sees that it and the handler are gone in time. */
  const stopped = async (jobId: string, signal: NodeJS.Signals) => {
    const worker = bed.run()
    const pid = await bed.begun(jobId)
    const since = performance.now()
    worker.kill(signal)
    expect(await worker.ended).toEqual({ code: 0, signal: null })
    expect(performance.now() - since).toBeLessThan(2_000)
    expect(isAlive(pid)).toBe(false)
  }

  test.each(['SIGTERM', 'SIGINT'] as const)('%s gives its job back within 2 seconds', async (signal) => {
    const jobId = await submitted(bed.engine.submit(busy, {}, { lockKey: 'l' }))
    await stopped(jobId, signal)
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect(await locks()).toEqual([{ job_id: expect.anything(), attempt_id: null }]) // the job's, for its next attempt
    expect(await bed.engine.workers()).toEqual([])
  })

  test('SIGTERM fails its job within 2 seconds where that is wanted, and frees the lock', async () => {
    const jobId = await submitted(bed.engine.submit(stubborn, {}, { lockKey: 'l' }))
    await stopped(jobId, 'SIGTERM')
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', error: 'Worker received SIGTERM' })
    expect(await locks()).toEqual([])
  })
})

describe('a second signal', () => {
  test.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
  ] as const)('ends the process at once: %s', async (signal, code) => {
    const jobId = await submitted(bed.engine.submit(hanging, {}))
    const blocked = await submitted(bed.engine.submit(busy, {}))
    const worker = bed.run({ graceMs: 600_000 })
    const pid = await bed.begun(blocked)
    await bed.begun(jobId)
    worker.kill('SIGTERM')
    await held(jobId, 'hanging.told')
    worker.kill(signal)
    expect(await worker.ended).toEqual({ code, signal: null })
    await expectGone(pid)
  })
})

describe('a worker that is killed', () => {
  test('takes its handler processes with it; another runs the job after the lease', async () => {
    const jobId = await submitted(bed.engine.submit(busy, {}))
    const worker = bed.run()
    const pid = await bed.begun(jobId)
    const dead = await bed.engine.get(jobId)
    worker.kill('SIGKILL')
    await expectGone(pid, 2_000)
    const other = bed.run()
    const next = await bed.begun(jobId, 2)
    expect(next).not.toBe(pid)
    const now = await bed.engine.get(jobId)
    expect(now).toMatchObject({ status: 'running', attempts: 2 })
    expect(now?.attemptId).not.toBe(dead?.attemptId)
    other.kill('SIGTERM')
    await other.ended
    const byTheDead = (await bed.events(jobId)).filter(({ attemptId }) => attemptId === dead?.attemptId)
    expect(byTheDead.map(({ event }) => event)).toEqual(['job.started', 'busy.begun', 'job.expired'])
  })
})

describe('a worker that is stopped past its lease and goes on', () => {
  test.each([
    ['writes nothing: the job is done once, by another', gated],
    ['nor does its handler process, which was not stopped', gatedApart],
  ])('%s', async (_fact, operation) => {
    const gate = await bed.hold((db) => db.query('gate', sql`select pg_advisory_xact_lock(1)`))
    const jobId = await submitted(bed.engine.submit(operation, {}))
    const stopped = bed.run()
    await bed.begun(jobId)
    const stale = (await bed.engine.get(jobId))?.attemptId
    stopped.kill('SIGSTOP')
    await bed.advance(60_000)
    bed.run()
    await bed.begun(jobId, 2)
    const current = (await bed.engine.get(jobId))?.attemptId
    await gate.commit()
    await bed.job(jobId, { status: 'completed', attempts: 2, result: { attempt: current ?? '' } })
    const before = await bed.engine.get(jobId)
    stopped.kill('SIGCONT')
    await held(jobId, 'job.fence_rejected')
    stopped.kill('SIGTERM')
    expect(await stopped.ended).toEqual({ code: 0, signal: null })
    expect(await bed.engine.get(jobId)).toEqual(before)
    expect(await bed.query('select * from ledger')).toEqual([{ job_id: jobId, what: 'written' }])
    const byStale = (await bed.events(jobId)).filter(({ attemptId }) => attemptId === stale)
    expect(new Set(byStale.map(({ event }) => event))).toEqual(
      new Set(['job.started', `${operation.name}.begun`, 'job.expired', 'job.fence_rejected']),
    )
  })
})
