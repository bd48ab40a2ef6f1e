import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { PermanentError } from '../errors.ts'
import { child, defer } from './defer.ts'
import type { SubmitOptions } from './submission.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const absent = '0'.repeat(32)

async function failed(payload: object = {}, options: SubmitOptions = {}): Promise<string> {
  const jobId = await submitted(bed.engine.submit(work, payload, options))
  const answer = await bed.engine.claimJob(jobId)
  if (!answer.claimed) throw new Error('not claimed')
  await bed.engine.fail(answer.attempt, new PermanentError('never'))
  return jobId
}

async function again(jobId: string): Promise<string> {
  const answer = await bed.engine.runAgain(jobId)
  if (!answer.ranAgain) throw new Error(`not run again: ${answer.why}`)
  return answer.jobId
}

test('a failed job is run again as a new job that names it, and stays as it is', async () => {
  const pipelineId = 'ab'.repeat(16)
  const options = {
    priority: 3,
    maxAttempts: 7,
    queue: 'slow',
    lockKey: 'l',
    slotKey: 's',
    dedupKey: 'd',
    pipelineId,
    tags: ['a', 'b c'],
  }
  const old = await failed({ big: 12345678901234567890n.toString(), half: 0.5 }, options)
  const before = await bed.engine.get(old)
  await bed.advance(60_000)
  const answer = await bed.engine.runAgain(old, { by: 'ada' })
  expect(answer).toEqual({ ranAgain: true, jobId: expect.stringMatching(/^[0-9a-f]{32}$/), isNew: true })
  const newer = await bed.engine.get(await again(old))
  expect(newer).toMatchObject({ ...options, status: 'pending', attempts: 0, submittedBy: 'ada', runAgainOf: old })
  expect(newer?.payload).toEqual(before?.payload)
  expect(newer?.runAfter).toBe(newer?.submittedAt)
  expect(await bed.engine.get(old)).toEqual({ ...before, runAgainAs: newer?.jobId, isCurrent: expect.any(Boolean) })
  expect((await bed.engine.events(old)).at(-1)).toMatchObject({
    event: 'job.run_again',
    fields: { job_id: newer?.jobId, by: 'ada' },
  })
})

test('a cancelled job is run again, and stays cancelled', async () => {
  const old = await submitted(bed.engine.submit(work, {}))
  await bed.engine.cancel(old)
  const newer = await again(old)
  await bed.engine.complete(await claimOne(bed.engine))
  expect((await bed.engine.get(newer))?.status).toBe('completed')
  expect((await bed.engine.get(old))?.status).toBe('cancelled')
})

test('a job that is pending, running, completed, deleted or unknown is refused with why', async () => {
  const job = await submitted(bed.engine.submit(work, {}))
  expect(await bed.engine.runAgain(job)).toEqual({ ranAgain: false, why: 'not_failed', status: 'pending' })
  const attempt = await claimOne(bed.engine)
  expect(await bed.engine.runAgain(job)).toEqual({ ranAgain: false, why: 'not_failed', status: 'running' })
  await bed.engine.complete(attempt)
  expect(await bed.engine.runAgain(job)).toEqual({ ranAgain: false, why: 'not_failed', status: 'completed' })
  const deleted = await failed()
  await bed.engine.delete(deleted)
  expect(await bed.engine.runAgain(deleted)).toEqual({ ranAgain: false, why: 'not_found' })
  expect(await bed.engine.runAgain(absent)).toEqual({ ranAgain: false, why: 'not_found' })
})

test('a lock or dedup key that another job holds, and drain, refuse it as they refuse a submission', async () => {
  const old = await failed({}, { lockKey: 'l', dedupKey: 'd' })
  const holder = await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
  expect(await bed.engine.runAgain(old)).toEqual({
    ranAgain: false,
    why: 'locked',
    lockKey: 'l',
    holder: { jobId: holder, attemptId: undefined },
  })
  await bed.engine.cancel(holder)
  const twin = await submitted(bed.engine.submit(work, {}, { dedupKey: 'd' }))
  expect(await bed.engine.runAgain(old)).toMatchObject({ ranAgain: false, why: 'duplicate', holder: { jobId: twin } })
  await bed.engine.cancel(twin)
  await bed.engine.setDrain('submissions')
  expect(await bed.engine.runAgain(old)).toEqual({ ranAgain: false, why: 'drained' })
  await bed.engine.setDrain('off')
  expect((await bed.engine.get(old))?.runAgainAs).toBeUndefined()
  expect((await bed.engine.events(old)).map(({ event }) => event)).not.toContain('job.run_again')
})

test('while the new job is unfinished it is the answer, and afterwards another one is made', async () => {
  const old = await failed()
  const first = await again(old)
  expect(await bed.engine.runAgain(old)).toEqual({ ranAgain: true, jobId: first, isNew: false })
  const attempt = await claimOne(bed.engine)
  expect(await bed.engine.runAgain(old)).toEqual({ ranAgain: true, jobId: first, isNew: false })
  await bed.engine.fail(attempt, new PermanentError('again'))
  const second = await again(old)
  expect(second).not.toBe(first)
  expect((await bed.engine.get(old))?.runAgainAs).toBe(second)
})

test('two calls at the same moment make one job: the second waits, and names it', async () => {
  const old = await failed()
  const gate = new Gate()
  const other = await bed.open({}, gate)
  const stop = gate.stopAt('run_again.note') // the first has its job inserted, and has not committed
  const first = other.runAgain(old)
  await stop.reached
  const second = bed.engine.runAgain(old)
  await bed.blocked()
  stop.go()
  const [one, two] = [await first, await second]
  expect([one, two]).toEqual([
    { ranAgain: true, jobId: expect.any(String), isNew: true },
    { ranAgain: true, jobId: one.ranAgain && one.jobId, isNew: false },
  ])
  expect(await bed.engine.list({ status: 'pending' })).toHaveLength(1)
})

test('a delete at the same moment comes before, or after and hides the old job only', async () => {
  const old = await failed()
  const gate = new Gate()
  const other = await bed.open({}, gate)
  const stop = gate.stopAt('run_again.note')
  const running = other.runAgain(old)
  await stop.reached
  const deleting = bed.engine.delete(old)
  await bed.blocked()
  stop.go()
  const answer = await running
  expect(answer).toMatchObject({ ranAgain: true })
  expect(await deleting).toEqual({ deleted: true })
  expect(await bed.engine.list()).toMatchObject([{ runAgainOf: old, status: 'pending' }])
})

test('a child is run again without its parent, which counts its children as before', async () => {
  const parent = await submitted(bed.engine.submit(work, {}))
  await bed.engine.complete(await claimOne(bed.engine), defer([child(work, {}), child(work, {})], { failWhen: 'all' }))
  const [one, two] = await bed.engine.claim({ limit: 2 })
  if (one === undefined || two === undefined) throw new Error('nothing to claim')
  await bed.engine.fail(one, new PermanentError('never'))
  const newer = await again(one.jobId)
  expect(await bed.engine.get(newer)).toMatchObject({ parentJobId: undefined, runAgainOf: one.jobId })
  await bed.engine.complete(await claimOne(bed.engine))
  expect(await bed.engine.get(parent)).toMatchObject({
    status: 'running',
    children: { total: 2, completed: 0, failed: 1 },
  })
  await bed.engine.complete(two)
  expect(await bed.engine.get(parent)).toMatchObject({
    status: 'completed',
    children: { total: 2, completed: 1, failed: 1 },
  })
})

test('a pipeline is judged by the job that was run again, not by the one before', async () => {
  const pipelineId = 'cd'.repeat(16)
  const status = async () => [
    (await bed.engine.pipeline(pipelineId))?.status,
    (await bed.engine.pipelinePage(pipelineId, { maxBytes: 1000 }))?.status,
  ]
  const old = await failed({}, { pipelineId })
  expect(await status()).toEqual(['failed', 'failed'])
  await again(old)
  expect(await status()).toEqual(['running', 'running'])
  await bed.engine.complete(await claimOne(bed.engine))
  expect(await status()).toEqual(['completed', 'completed'])
})

test('retention removes what a removed job had run again', async () => {
  const old = await failed()
  await bed.engine.cancel(await again(old))
  await bed.advance(400 * 86_400_000)
  expect(await bed.engine.retain()).toBe(2)
  expect(await bed.query('select from fencepost.run_agains')).toEqual([])
})
