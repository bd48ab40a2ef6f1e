import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openServerBed, type ServerBed } from './server-bed.ts'

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed()
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

test('a queue is paused, shown and resumed, and says so to its jobs', async () => {
  const { client } = on
  const { queue, paused_at: since } = await client.pauseQueue('default')
  expect({ queue, since }).toEqual({ queue: 'default', since: expect.any(String) })
  const job = await client.submitJob('echo', { payload: { n: 1 } })
  expect(await on.engine.claim()).toEqual([])
  expect((await client.explainJob(job.job_id)).reasons).toContainEqual(
    expect.objectContaining({ reason: 'queue_paused', queue: 'default', since }),
  )
  expect(await client.listQueues()).toContainEqual(expect.objectContaining({ queue: 'default', paused_at: since }))
  expect(await client.resumeQueue('default')).toEqual({ queue: 'default', paused_at: null, paused_by: null })
  expect(await on.engine.claim()).toHaveLength(1)
})

test('what cannot be a queue is not found', async () => {
  await expect(on.client.pauseQueue('No Queue')).rejects.toMatchObject({ code: 'queue_not_found', status: 404 })
})

test('tags and time limits are submitted, shown and filtered by', async () => {
  const { client } = on
  const limits = { tags: ['eu', 'night'], timeout_ms: 5_000, start_by: '2100-01-01T00:00:00Z' }
  const job = await client.submitJob('echo', { payload: { n: 1 }, ...limits })
  expect(job).toMatchObject({ ...limits, start_by: '2100-01-01T00:00:00.000000Z' })
  await client.submitJob('echo', { payload: { n: 2 }, tags: ['us'] })
  expect((await client.listJobs({ tag: 'night' })).map(({ job_id: jobId }) => jobId)).toEqual([job.job_id])
  const both = { payload: {}, start_by: limits.start_by, start_within_ms: 1 }
  await expect(client.submitJob('echo', both)).rejects.toMatchObject({ code: 'request_invalid' })
})
