import type { Job } from '@fencepost/engine'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { data } from '../src/sequences/data.ts'
import { annotationBed } from './bed.ts'

const bed = annotationBed()
const model = (k: number) => ({ k, dimensions: 64 })
const forEver = { device_ms: 3_600_000 }
let stop = async () => {}
let dataset = 0

/** A dataset that no other test has embedded anything of. */
const fresh = async (file = data.damaged) => {
  dataset += 1
  await bed.readSample(`d${dataset}`, file)
  return `d${dataset}`
}
const statuses = (jobs: readonly Job[]) => jobs.map(({ status }) => status)
const eventsOf = async (jobId: string, event: string) =>
  (await bed.engine.events(jobId)).filter((one) => one.event === event)

beforeAll(() => {
  stop = bed.work(4)
})
afterEach(async () => {
  for (const status of ['pending', 'running'] as const) {
    for (const { jobId } of await bed.engine.list({ status, operation: 'compute_embeddings' }))
      await bed.engine.cancel(jobId)
  }
})

describe('the GPU', () => {
  test('is taken: a second compute_embeddings raises RetryLater, and runs when the first has ended', async () => {
    const [a, b] = [await fresh(data.sample), await fresh(data.sample)]
    const { computeEmbeddings } = bed.operations
    const first = await bed.submit(computeEmbeddings, { dataset: a, batch_size: 224, simulate: { device_ms: 2_000 } })
    await bed.until(first, { deferredAt: expect.any(String) })
    const second = await bed.submit(computeEmbeddings, { dataset: b })
    await expect.poll(() => eventsOf(second, 'job.retry_later'), { timeout: 10_000 }).not.toEqual([])
    const [sentBack] = await eventsOf(second, 'job.retry_later')
    expect(sentBack?.message).toBe(`the GPU is taken by job ${first}`)
    expect(await bed.engine.list({ ancestorJobId: second })).toEqual([])
    const [ended, after] = [await bed.ended(first), await bed.ended(second)]
    expect(statuses([ended, after])).toEqual(['completed', 'completed'])
    expect(after.attempts).toBe(1) // however often it was sent back
    const began = (await bed.descendants(second, 'embed_batch')).map(({ startedAt }) => startedAt ?? '').sort()[0] ?? ''
    expect(began > (ended.completedAt ?? '')).toBe(true)
  })

  test('is free again when its holder is cancelled', async () => {
    const { computeEmbeddings } = bed.operations
    const [a, b] = [await fresh(), await fresh(data.sample)]
    const first = await bed.submit(computeEmbeddings, { dataset: a, batch_size: 30, simulate: forEver })
    await bed.until(first, { deferredAt: expect.any(String) })
    const second = await bed.submit(computeEmbeddings, { dataset: b })
    await expect.poll(() => eventsOf(second, 'job.retry_later'), { timeout: 10_000 }).not.toEqual([])
    await bed.engine.cancel(first)
    await bed.until(second, { status: 'completed' })
  })

  test('is never with two at once, however many want it', async () => {
    const datasets = [
      await fresh(data.sample),
      await fresh(data.sample),
      await fresh(data.sample),
      await fresh(data.sample),
    ]
    const jobIds = await Promise.all(
      datasets.map((one) => bed.submit(bed.operations.computeEmbeddings, { dataset: one, batch_size: 100 })),
    )
    const uses: { from: string; to: string }[] = []
    for (const jobId of jobIds) {
      const { status, deferredAt = '', completedAt = '' } = await bed.ended(jobId)
      expect(status).toBe('completed')
      uses.push({ from: deferredAt, to: completedAt })
    }
    uses.sort((a, b) => (a.from < b.from ? -1 : 1))
    for (const [nth, { from }] of uses.slice(1).entries()) expect(from > (uses[nth]?.to ?? '')).toBe(true)
  })
})

describe('one batch that fails for good', () => {
  const cause = 'PermanentError: DM0034 cannot be embedded: residue 51 is "?"'
  const compute = async (failWhen: 'any' | 'all' | { ratio: number }) => {
    const damaged = await fresh()
    const payload = { dataset: damaged, batch_size: 10, fail_when: failWhen }
    const jobId = await bed.submit(bed.operations.computeEmbeddings, payload)
    const { rows } = await bed
      .ended(jobId)
      .then(() => bed.pool.query('select distinct accession from annotation.embeddings where dataset = $1', [damaged]))
    return { jobId, job: await bed.engine.get(jobId), stored: rows.length }
  }

  test.each([
    ['any', 'failed'],
    ['all', 'completed'],
    [{ ratio: 0.1 }, 'failed'],
    [{ ratio: 0.2 }, 'completed'],
  ] as const)('of six, with fail_when %j: the parent has %s', async (failWhen, status) => {
    const { jobId, job, stored } = await compute(failWhen)
    expect(job).toMatchObject({ status, children: { total: 6, completed: 5, failed: 1 } })
    expect(job?.error).toBe(status === 'failed' ? `1 of 6 children failed: ${cause}` : undefined)
    expect(stored).toBe(50) // the other batches are stored in any case
    const [bad] = (await bed.descendants(jobId, 'embed_batch')).filter((one) => one.status === 'failed')
    expect(bad).toMatchObject({ attempts: 1, errorCode: 'PermanentError', payload: { batch: 4 } })
  })
})

describe('cancelling the parent', () => {
  test('cancels its queued batches at once, and has those that run stop', async () => {
    const sample = await fresh(data.sample)
    const payload = { dataset: sample, batch_size: 10, model: model(2), simulate: forEver }
    const jobId = await bed.submit(bed.operations.computeEmbeddings, payload)
    const batches = () => bed.descendants(jobId, 'embed_batch')
    const running = async () => (await batches()).filter(({ status }) => status === 'running')
    await expect.poll(async () => (await running()).length, { timeout: 20_000 }).toBeGreaterThanOrEqual(4)
    const answer = await bed.engine.cancel(jobId, { by: 'a test' })
    // At once: nothing is waited for here.
    expect(statuses([(await bed.engine.get(jobId)) as Job, ...(await batches())])).toEqual(
      Array.from({ length: 46 }, () => 'cancelled'),
    )
    expect(answer).toMatchObject({ cancelled: true, jobIds: expect.objectContaining({ length: 46 }) })
    // The worker is free again: a handler that had not stopped would keep its place for an hour.
    await bed.readSample('after-cancel', data.damaged)
    const { rows } = await bed.pool.query('select from annotation.embeddings where dataset = $1', [sample])
    expect(rows).toEqual([])
  })

  test('leaves what was stored', async () => {
    const sample = await fresh(data.sample)
    const payload = { dataset: sample, batch_size: 10, model: model(2), simulate: { device_ms: 100 } }
    const jobId = await bed.submit(bed.operations.computeEmbeddings, payload)
    await expect
      .poll(async () => (await bed.engine.get(jobId))?.children?.completed, { timeout: 20_000 })
      .toBeGreaterThan(2)
    await bed.engine.cancel(jobId)
    const writes = await bed.descendants(jobId, 'store_embeddings')
    const stored = writes.filter(({ status }) => status === 'completed').map((write) => write.jobId)
    const { rows } = await bed.pool.query<{ job_id: string; rows: number }>(
      'select job_id, count(*)::integer as rows from annotation.embeddings where dataset = $1 group by job_id',
      [sample],
    )
    expect(rows.map(({ job_id }) => job_id).sort()).toEqual(stored.sort())
    expect(stored.length).toBeLessThan(45)
    await stop()
  })
})
