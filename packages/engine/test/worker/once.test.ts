import { describe, expect, test } from 'vitest'
import { exitCodeOf } from '../../src/worker/once.ts'
import { submitted } from '../bed.ts'
import { busy, failing, hanging, plain } from './programs/operations.ts'
import { expectGone, workerBed } from './worker-bed.ts'

const bed = workerBed()
const once = async () => (await bed.run({ once: true }).ended).code

describe('a worker that runs one job', () => {
  test('exits with 3 when there is nothing to do', async () => {
    expect(await once()).toBe(3)
  })

  test('exits with 0 when it has completed one, and leaves the others', async () => {
    const jobId = await submitted(bed.engine.submit(busy, { ms: 1_500 })) // longer than its lease, and blocking
    const other = await submitted(bed.engine.submit(plain, {}))
    expect(await once()).toBe(0)
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', attempts: 1 })
    expect(await bed.engine.get(other)).toMatchObject({ status: 'pending' })
    expect(await bed.engine.workers()).toEqual([])
  })

  test('exits with 1 when it has failed', async () => {
    const jobId = await submitted(bed.engine.submit(failing, {}))
    expect(await once()).toBe(1)
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', error: 'it does' })
  })

  test('exits with 1 when it is stopped, and gives the job back', async () => {
    const jobId = await submitted(bed.engine.submit(busy, {}))
    const worker = bed.run({ once: true, graceMs: 100 })
    const pid = await bed.begun(jobId)
    worker.kill('SIGTERM')
    expect(await worker.ended).toEqual({ code: 1, signal: null })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    await expectGone(pid)
  })
})

describe('workOnce', () => {
  test('says what the job came to', async () => {
    const engine = await bed.open({ operations: [plain, failing] })
    expect(await engine.workOnce()).toEqual({ outcome: 'nothing' })
    expect(await engine.workOnce({ signal: AbortSignal.abort() })).toEqual({ outcome: 'stopped' })
    const good = await submitted(engine.submit(plain, {}))
    expect(await engine.workOnce()).toEqual({ outcome: 'completed', jobId: good })
    const bad = await submitted(engine.submit(failing, {}, { maxAttempts: 2 }))
    expect(await engine.workOnce()).toEqual({ outcome: 'retried', jobId: bad })
    expect(await engine.workOnce()).toEqual({ outcome: 'nothing' })
    await bed.advance(60_000)
    expect(await engine.workOnce()).toEqual({ outcome: 'failed', jobId: bad })
  })

  test('gives back what it was running when it is stopped', async () => {
    const engine = await bed.open({ operations: [hanging] })
    const controller = new AbortController()
    const jobId = await submitted(engine.submit(hanging, {}))
    const worked = engine.workOnce({ signal: controller.signal, graceMs: 10 })
    await bed.begun(jobId)
    controller.abort()
    expect(await worked).toEqual({ outcome: 'released', jobId })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('is told of a cancel', async () => {
    const engine = await bed.open({ operations: [hanging] })
    const controller = new AbortController()
    const jobId = await submitted(engine.submit(hanging, {}))
    const worked = engine.workOnce({ signal: controller.signal, graceMs: 10 })
    await bed.begun(jobId)
    await bed.engine.cancel(jobId)
    // It says that it was told, and is not let.
    await expect
      .poll(async () => (await bed.events(jobId)).map(({ event }) => event), { timeout: 5_000 })
      .toContain('job.fence_rejected')
    controller.abort()
    expect(await worked).toEqual({ outcome: 'fence_lost', jobId })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'cancelled' })
  })

  test('has an exit code for everything', () => {
    expect(exitCodeOf({ outcome: 'deferred', jobId: '' })).toBe(0)
    for (const outcome of ['retried', 'retry_later', 'released', 'fence_lost', 'not_written'] as const) {
      expect(exitCodeOf({ outcome, jobId: '' })).toBe(1)
    }
    expect(exitCodeOf({ outcome: 'stopped' })).toBe(1)
  })
})
