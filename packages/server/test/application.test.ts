import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { ApiError, endpoint, type Application } from '../src/index.ts'
import { openServerBed, resize, type ServerBed } from './server-bed.ts'

const plan = {
  method: 'POST',
  path: '/images/{image}/plan',
  summary: 'What resizing would do',
  tag: 'images',
  role: 'operator',
  params: z.object({ image: z.string() }),
  body: z.strictObject({ width: z.int().min(1) }),
  status: 202,
  answer: z.object({ job: z.looseObject({ job_id: z.string() }), by: z.string() }),
  answerHeaders: { Location: 'Where the job is.' },
  errors: ['lock_held'],
} as const

const images: Application = {
  name: 'images',
  endpoints: (engine, present) => [
    endpoint(plan, async ({ params, body, caller }) => {
      if (params.image === 'missing')
        throw new ApiError({ code: 'image_unknown', status: 404 }, 'There is no such image.')
      const answer = await engine.submit(resize, { image: params.image }, { by: caller.name })
      if (!answer.submitted) throw new ApiError('lock_held', 'It is being resized.', { details: { width: body.width } })
      await engine.claimJob(answer.jobId)
      const job = await engine.get(answer.jobId)
      if (job === undefined) throw new Error('it is gone')
      const json = present.accepted(job)
      return {
        body: { job: json as { job_id: string }, by: caller.name },
        headers: { location: `/jobs/${answer.jobId}` },
      }
    }),
  ],
  presentJob: ({ payload, ...json }, job) =>
    job.operation === 'resize' ? { ...json, image: (job.payload as { image: string }).image } : { ...json, payload },
  payloadInListsOf: ['resize'],
  jobFilters: {
    image: {
      schema: z.string().regex(/^\w+$/),
      description: 'Only jobs of this image.',
      apply: (image) => ({ lockKey: `image/${image}` }),
    },
  },
  metrics: () => '# TYPE images_known gauge\nimages_known 3\n',
}

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed({ applications: [images] })
})
afterAll(() => on.close())

test('an application has routes, job fields, filters, errors and metrics of its own', async () => {
  const made = await on.http('POST', '/images/cat/plan', { body: { width: 5 } })
  expect(made).toMatchObject({ status: 202, json: { by: 'local', job: { image: 'cat', operation: 'resize' } } })
  const { job } = made.json as { job: { job_id: string; payload?: unknown } }
  expect(made.headers.get('location')).toBe(`/jobs/${job.job_id}`)
  expect(job.payload).toBeUndefined()
  // A worker has it already; the answer is the job as it was accepted.
  expect(job).toMatchObject({ status: 'pending', started_at: null, attempts: 0, attempt_id: null })
  expect((await on.http('GET', `/jobs/${job.job_id}`)).json).toMatchObject({ status: 'running', attempts: 1 })
  const other = await on.http('POST', '/operations/echo/jobs', { body: { payload: { a: 1 } } })
  expect(other.json).toMatchObject({ payload: { a: 1 } })
  const filtered = await on.http('GET', '/jobs?image=cat')
  expect(filtered.json).toMatchObject([{ job_id: job.job_id, image: 'cat' }])
  expect(filtered.json).not.toHaveProperty('0.payload')
  expect((await on.http('GET', '/jobs?image=dog')).json).toEqual([])
  expect(await on.http('GET', '/jobs?image=a%20b')).toMatchObject({ status: 400, code: 'request_invalid' })
  expect(await on.http('POST', '/images/missing/plan', { body: { width: 5 } })).toMatchObject({
    status: 404,
    code: 'image_unknown',
  })
  expect((await on.http('GET', '/metrics')).text).toContain('\nimages_known 3\n')
})

test('its routes are checked, guarded and documented like the others', async () => {
  expect(await on.http('POST', '/images/cat/plan', { body: { width: 0 } })).toMatchObject({ status: 400 })
  expect(await on.http('POST', '/images/cat/plan', { body: { width: 1 } })).toMatchObject({
    status: 409,
    code: 'lock_held',
  })
  expect(await on.http('GET', '/images/cat/plan')).toMatchObject({ status: 405 })
  const document = (await on.http('GET', '/openapi.json')).json as {
    paths: Record<string, { get: { parameters: { name: string }[] } }>
  }
  expect(document.paths).toHaveProperty('/images/{image}/plan')
  expect(document.paths['/jobs']?.get.parameters.map(({ name }) => name)).toContain('image')
  expect((await on.http('GET', '/docs')).text).toContain('What resizing would do')
  const token = await on.token('viewer')
  try {
    expect(await on.http('POST', '/images/cat/plan', { token, body: { width: 1 } })).toMatchObject({ status: 403 })
  } finally {
    await on.bed.query('delete from fencepost.tokens')
  }
})
