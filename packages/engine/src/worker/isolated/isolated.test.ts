import { describe, expect, test } from 'vitest'
import { submitted } from '../../../test/bed.ts'
import { raw } from '../../database/sql.ts'
import {
  busy,
  completing,
  deferring,
  dying,
  holding,
  plain,
  polite,
  talking,
} from '../../../test/worker/programs/operations.ts'
import { expectGone, workerBed } from '../../../test/worker/worker-bed.ts'

const bed = workerBed()

const leaseOf = async (jobId: string) => {
  const [row] = await bed.query<{ lease_until: Date }>('select lease_until from fencepost.jobs where job_id = $1', [
    jobId,
  ])
  return row?.lease_until.getTime() ?? 0
}

describe('an isolated handler', () => {
  test('keeps its lease while it blocks its thread', async () => {
    const jobId = await submitted(bed.engine.submit(busy, { ms: 3_000 }))
    const worker = bed.run()
    await bed.begun(jobId)
    const leases = new Set<number>()
    await expect
      .poll(async () => leases.add(await leaseOf(jobId)).size, { timeout: 10_000, interval: 50 })
      .toBeGreaterThan(4)
    const { attempts, result } = await bed.job(jobId, { status: 'completed' })
    expect(attempts).toBe(1)
    expect(result).not.toEqual({ pid: worker.pid })
    expect((await bed.events(jobId)).map(({ event }) => event)).toEqual([
      'job.submitted',
      'job.started',
      'busy.begun',
      'job.completed',
    ])
  })

  test('has the whole attempt, under the same fence', async () => {
    const jobId = await submitted(bed.engine.submit(talking, {}))
    const parentId = await submitted(bed.engine.submit(deferring, {}))
    bed.run()
    await bed.job(jobId, { status: 'completed', result: { step: 'kept' }, progress: { current: 1, total: 2 } })
    await bed.job(parentId, { status: 'completed', children: { total: 1, completed: 1, failed: 0 } })
    expect(await bed.query('select * from ledger')).toEqual([{ job_id: jobId, what: 'kept' }])
    const { jobs } = (await bed.engine.pipeline(jobId)) ?? { jobs: [] }
    expect(jobs.map(({ operation }) => operation).sort()).toEqual(['plain', 'talking'])
  })

  test('that is killed while Postgres is at a statement of its own keeps no other job waiting', async () => {
    const held = await bed.hold((db) => db.query('lock', raw('select pg_advisory_xact_lock(2)')))
    const jobIds = await Promise.all([1, 2, 3].map(() => submitted(bed.engine.submit(holding, {}))))
    bed.run({ concurrency: 4 })
    for (const jobId of jobIds) await bed.begun(jobId)
    await bed.blocked(3)
    const pids = await Promise.all(jobIds.map((jobId) => bed.begun(jobId)))
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    for (const pid of pids) await expectGone(pid)
    const other = await submitted(bed.engine.submit(plain, {}))
    await bed.job(other, { status: 'completed' })
    await held.rollback()
    for (const jobId of jobIds) await bed.job(jobId, { status: 'failed' })
  })

  test('can complete its job by itself', async () => {
    const jobId = await submitted(bed.engine.submit(completing, {}))
    bed.run()
    const { result } = await bed.job(jobId, { status: 'completed', attempts: 1 })
    expect(result).toEqual({ pid: expect.any(Number) })
    expect(await bed.query('select * from ledger')).toEqual([{ job_id: jobId, what: 'completed' }])
    await expect.poll(async () => (await bed.engine.pipeline(jobId))?.status).toBe('completed')
    expect((await bed.events(jobId)).map(({ event }) => event)).not.toContain('job.fence_rejected')
  })

  test('shares its process with the next job, not with another that runs', async () => {
    const both = await Promise.all([1, 2].map(() => submitted(bed.engine.submit(busy, { ms: 300 }))))
    bed.run({ concurrency: 2 })
    for (const jobId of both) await bed.job(jobId, { status: 'completed' })
    const pids = new Set((await Promise.all(both.map((jobId) => bed.pids(jobId)))).flat())
    expect(pids.size).toBe(2)
    const next = await submitted(bed.engine.submit(busy, { ms: 0 }))
    await bed.job(next, { status: 'completed' })
    expect([...pids]).toContain(await bed.begun(next))
  })

  test('is told why it should stop', async () => {
    const jobId = await submitted(bed.engine.submit(polite, {}, { lockKey: 'l' }))
    const worker = bed.run({ graceMs: 60_000 })
    const pid = await bed.begun(jobId)
    worker.kill('SIGTERM')
    expect(await worker.ended).toEqual({ code: 0, signal: null })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    await expectGone(pid)
  })

  test('is killed if it goes on after a cancel, and then lets go of its lock', async () => {
    const jobId = await submitted(bed.engine.submit(busy, {}, { lockKey: 'l' }))
    bed.run({ graceMs: 200 })
    const pid = await bed.begun(jobId)
    await bed.engine.cancel(jobId)
    await expect.poll(() => bed.query('select from fencepost.resource_locks')).toEqual([])
    await expectGone(pid, 0)
    const next = await submitted(bed.engine.submit(busy, { ms: 0 }, { lockKey: 'l' }))
    await bed.job(next, { status: 'completed' })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'cancelled' })
  })
})

describe('an isolated handler whose fence is lost', () => {
  test('is killed if it goes on', async () => {
    const jobId = await submitted(bed.engine.submit(busy, {}))
    bed.run({ graceMs: 200 })
    const pid = await bed.begun(jobId)
    // Its worker renews all the time: the sweep must come between two renewals.
    const expire = async () => {
      await bed.advance(60_000)
      return (await bed.engine.sweep())?.expired.length
    }
    await expect.poll(expire, { timeout: 10_000 }).toBe(1)
    await expectGone(pid)
    expect(await bed.begun(jobId, 2)).not.toBe(pid)
  })
})

describe('a handler process that ends', () => {
  test('fails its attempt at once, and says how', async () => {
    const ways = [
      { how: 'exit', errorCode: 'handler_exited', words: 'code 7' },
      { how: 'abort', errorCode: 'handler_crashed', words: 'SIGABRT' },
      { how: 'segfault', errorCode: 'handler_crashed', words: 'SIGSEGV' },
      { how: 'timer', errorCode: 'handler_exited', words: 'RangeError: thrown by a timer' },
      { how: 'memory', errorCode: 'handler_out_of_memory', words: 'maxMemoryMb is 64' },
    ]
    const jobIds = await Promise.all(
      ways.map(({ how }) => submitted(bed.engine.submit(dying, { how }, { maxAttempts: 1 }))),
    )
    bed.run({ concurrency: 2 })
    for (const [nth, { how, errorCode, words }] of ways.entries()) {
      const jobId = jobIds[nth] ?? ''
      const { error } = await bed.job(jobId, { status: 'failed', errorCode })
      expect(error).toContain(words)
      if (how !== 'memory') expect(error).toContain(`about to end by ${how}`) // the report of V8 is longer than that
      await expectGone(await bed.begun(jobId))
    }
  })

  test('because somebody killed it fails its attempt at once, and is tried again', async () => {
    const jobId = await submitted(bed.engine.submit(dying, { how: 'nothing' }, { maxAttempts: 2 }))
    bed.run()
    const pid = await bed.begun(jobId)
    process.kill(pid, 'SIGKILL')
    const { attempts } = await bed.job(jobId, { status: 'completed' })
    expect(attempts).toBe(2)
    const retried = (await bed.events(jobId)).find(({ event }) => event === 'job.retried')
    expect(retried).toMatchObject({
      fields: { error_code: 'handler_crashed' },
      message: expect.stringContaining('SIGKILL'),
    })
  })

  test('takes along what its handler had started', async () => {
    const jobId = await submitted(bed.engine.submit(dying, { how: 'offspring' }, { maxAttempts: 1 }))
    bed.run()
    const { error } = await bed.job(jobId, { status: 'failed', errorCode: 'handler_exited' })
    await expectGone(Number(/offspring (\d+)/.exec(error ?? '')?.[1]))
  })

  test('is not needed for a handler that throws', async () => {
    const jobs = await Promise.all(
      [1, 2].map(() => submitted(bed.engine.submit(dying, { how: 'throw' }, { maxAttempts: 1 }))),
    )
    bed.run({ concurrency: 1 })
    for (const jobId of jobs) await bed.job(jobId, { status: 'failed', errorCode: 'RangeError' })
    const [first, second] = await Promise.all(jobs.map((jobId) => bed.pids(jobId)))
    expect(first).toEqual(second)
  })

  test.each(['rejection', 'rejection, and it returns'])(
    'is killed after a forgotten %s, and settled then',
    async (how) => {
      const jobId = await submitted(bed.engine.submit(dying, { how }, { maxAttempts: 1, lockKey: 'l' }))
      bed.run({ concurrency: 1 })
      const { error } = await bed.job(jobId, { status: 'failed', errorCode: 'RangeError' })
      expect(error).toBe('nobody waited for this')
      const pid = await bed.begun(jobId)
      await expectGone(pid, 0)
      const next = await submitted(bed.engine.submit(busy, { ms: 0 }, { lockKey: 'l' }))
      await bed.job(next, { status: 'completed', attempts: 1 })
      expect(await bed.begun(next)).not.toBe(pid)
    },
  )
})

describe('a worker that cannot run its handlers', () => {
  test('says so before it claims anything', async () => {
    const jobId = await submitted(bed.engine.submit(busy, { ms: 0 }))
    const missing = await bed.open({ operations: [plain, busy] })
    await expect(missing.work()).rejects.toMatchObject({ code: 'operations_module_missing' })
    const modules = { '/nowhere/operations.mjs': 'Cannot find module', 'dist/errors.js': 'no array named operations' }
    for (const [operationsModule, why] of Object.entries(modules)) {
      const worker = bed.run({}, { operationsModule })
      expect(await worker.ended).toEqual({ code: 1, signal: null })
      expect(worker.output()).toContain('operations_module_invalid')
      expect(worker.output()).toContain(why)
    }
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
  })
})
