import { routes, type AnswerOf, type Job as JobAnswer, type JobValue, type Routes } from '@fencepost/client'
import type { Engine, Job, JobPage, ListOptions, PageOptions } from '@fencepost/engine'
import type { Presenter } from '../application.ts'
import { callerKey, endpoint, type Endpoint } from '../endpoint.ts'
import { given, type Filters } from './filter.ts'
import { checkJobId, notFound, type JobReader } from './job-reader.ts'
import type { JobPages } from './page.ts'
import { operatorEndpoints } from './operator-endpoints.ts'
import { snakeCase } from './present.ts'
import { retryAfter } from './retry-after.ts'

/** Reading jobs, and what operators do to them. */
export function jobEndpoints(
  engine: Engine,
  jobs: JobReader,
  pages: JobPages,
  present: Presenter,
  filters: Filters,
): readonly Endpoint[] {
  const one = async (job: Job) => (await present.jobs([job]))[0] as JobAnswer
  return [
    listEndpoint(engine, pages, filters),
    countEndpoint(engine, filters),
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

function listEndpoint(engine: Engine, pages: JobPages, filters: Filters): Endpoint {
  const route = { ...routes.listJobs, query: filters.extend(routes.listJobs.query) }
  return endpoint(route, async ({ query, ...call }) => {
    const { limit, after, include } = query
    const options: ListOptions = { ...filters.read(query), ...given({ limit, after }) }
    return listAnswer(pages, callerKey(call), include, (bounds) => engine.listPage({ ...options, ...bounds }))
  })
}

function countEndpoint(engine: Engine, filters: Filters): Endpoint {
  const route = { ...routes.countJobs, query: filters.extend(routes.countJobs.query) }
  return endpoint(route, async ({ query }) => ({ body: await engine.count(filters.read(query)) }))
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
