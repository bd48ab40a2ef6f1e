import { routes, type AnswerOf, type Job as JobAnswer, type JobValue, type Routes } from '@fencepost/client'
import type { Engine, Job, JobPage, ListOptions, PageOptions } from '@fencepost/engine'
import { z } from 'zod'
import type { Application, Presenter } from '../application.ts'
import { callerKey, endpoint, type Endpoint } from '../endpoint.ts'
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

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

/** Without the properties that are undefined. */
function given<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>
}
