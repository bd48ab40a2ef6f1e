import { routes, type AnswerOf, type Job as JobAnswer, type JobValue, type Routes } from '@fencepost/client'
import type { Engine, Job, JobPage, ListOptions, PageOptions } from '@fencepost/engine'
import { z } from 'zod'
import type { Application, Presenter } from '../application.ts'
import { callerKey, endpoint, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import { checkJobId, notFound, type JobReader } from './job-reader.ts'
import type { JobPages } from './page.ts'
import { snakeCase } from './present.ts'

/** How long callers are asked to wait before they look again at a job that has not ended. */
const lookAgainSeconds = 30

/** Reading jobs, and what operators do to them. */
export function jobEndpoints(
  engine: Engine,
  jobs: JobReader,
  pages: JobPages,
  present: Presenter,
  applications: readonly Application[],
): readonly Endpoint[] {
  const one = async (job: Job) => (await present.jobs([job]))[0] as JobAnswer
  return [
    listEndpoint(engine, pages, applications),
    endpoint(routes.getJob, async ({ params, ...call }) => {
      const job = await jobs.whole(params.job_id, callerKey(call))
      return { body: await one(job), headers: retryAfter(job) }
    }),
    endpoint(routes.jobChildren, async ({ params, query: { include, ...query }, ...call }) => {
      const { jobId } = await jobs.existing(params.job_id)
      const options = { ...given(query), parentJobId: jobId }
      return listAnswer(pages, callerKey(call), include, (bounds) => engine.listPage({ ...options, ...bounds }))
    }),
    endpoint(routes.explainJob, async ({ params }) => {
      const explanation = await engine.explain(checkJobId(params.job_id))
      if (explanation === undefined) throw notFound(params.job_id)
      const { jobId, status, reasons, message } = explanation
      const body = { job_id: jobId, status, reasons: reasons.map(snakeCase), message }
      return { body: body as AnswerOf<Routes['explainJob']> }
    }),
    ...operatorEndpoints(engine, jobs, one),
  ]
}

function operatorEndpoints(
  engine: Engine,
  jobs: JobReader,
  one: (job: Job) => Promise<JobAnswer>,
): readonly Endpoint[] {
  return [
    endpoint(routes.cancelJob, async ({ params, caller, request }) => {
      const jobId = checkJobId(params.job_id)
      const answer = await engine.cancel(jobId, { by: caller.name })
      if (answer.cancelled) return { body: await one(await jobs.changed(jobId, callerKey({ caller, request }))) }
      if (answer.why === 'not_found') throw notFound(jobId)
      throw new ApiError('job_finished', `Job ${jobId} has already ended as ${answer.status}.`, {
        details: { job_id: jobId, status: answer.status },
      })
    }),
    endpoint(routes.deleteJob, async ({ params, caller }) => {
      const jobId = checkJobId(params.job_id)
      const answer = await engine.delete(jobId, { by: caller.name })
      if (answer.deleted) return { body: undefined }
      if (answer.why === 'not_found') throw notFound(jobId)
      throw new ApiError('job_unfinished', `Job ${jobId} is ${answer.status}: cancel it first.`, {
        details: { job_id: jobId, status: answer.status },
      })
    }),
    endpoint(routes.recoverJob, async ({ params, caller, request }) => {
      const jobId = checkJobId(params.job_id)
      const answer = await engine.recover(jobId, { by: caller.name })
      if (answer.recovered) return { body: await one(await jobs.changed(jobId, callerKey({ caller, request }))) }
      switch (answer.why) {
        case 'not_found':
          throw notFound(jobId)
        case 'not_running':
          throw new ApiError('job_not_running', `Job ${jobId} is ${answer.status}, so there is nothing to recover.`, {
            details: { job_id: jobId, status: answer.status },
          })
        case 'waiting_for_children':
          throw new ApiError('job_waiting', `Job ${jobId} waits for its children: no worker has it.`, {
            details: { job_id: jobId },
          })
        case 'not_stale':
          throw new ApiError(
            'job_not_stale',
            `Job ${jobId} was claimed at ${answer.claimedAt}; it can be recovered ${answer.staleMs} ms after that.`,
            { details: { job_id: jobId, claimed_at: answer.claimedAt, stale_ms: answer.staleMs } },
          )
      }
    }),
  ]
}

function listEndpoint(engine: Engine, pages: JobPages, applications: readonly Application[]): Endpoint {
  const filters = Object.assign({}, ...applications.map(({ jobFilters }) => jobFilters ?? {})) as NonNullable<
    Application['jobFilters']
  >
  const more = Object.fromEntries(
    Object.entries(filters).map(([name, { schema, description }]) => [name, schema.optional().describe(description)]),
  )
  const route = { ...routes.listJobs, query: z.strictObject({ ...routes.listJobs.query.shape, ...more }) }
  return endpoint(route, async ({ query, ...call }) => {
    const { parent, pipeline, lock_key: lockKey, tag, status, operation, queue, limit, after, include, ...rest } = query
    const options: ListOptions = given({
      parentJobId: parent,
      pipelineId: pipeline,
      lockKey,
      tag,
      status,
      operation,
      queue,
      limit,
      after,
    })
    for (const [name, value] of Object.entries<string | undefined>(rest)) {
      if (value !== undefined) Object.assign(options, filters[name]?.apply(value))
    }
    return listAnswer(pages, callerKey(call), include, (bounds) => engine.listPage({ ...options, ...bounds }))
  })
}

async function listAnswer(
  pages: JobPages,
  caller: string,
  include: readonly JobValue[] | undefined,
  read: (bounds: Pick<PageOptions, 'include' | 'payloadOf' | 'maxBytes'>) => Promise<JobPage>,
): Promise<{ json: string; headers: Record<string, string> }> {
  const page = await pages.page(caller, include, read)
  return { json: `[${page?.items.join(',') ?? ''}]`, headers: page?.headers ?? {} }
}

/** The header that asks to look again later, while there is something to wait for. */
export function retryAfter({ status }: Pick<Job, 'status'>): Record<string, string> {
  return status === 'pending' || status === 'running' ? { 'retry-after': String(lookAgainSeconds) } : {}
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Without the properties that are undefined. */
function given<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>
}
