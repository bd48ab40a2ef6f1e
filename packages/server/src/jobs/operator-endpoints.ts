import { routes, type Job as JobAnswer } from '@fencepost/client'
import type { Engine, Job } from '@fencepost/engine'
import { callerKey, endpoint, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import { conflictOf } from './conflict.ts'
import { checkJobId, notFound, type JobReader } from './job-reader.ts'
import { retryAfter } from './retry-after.ts'

type Show = (job: Job) => Promise<JobAnswer>

/** What operators do to one job. */
export function operatorEndpoints(engine: Engine, jobs: JobReader, one: Show): readonly Endpoint[] {
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
    runAgainEndpoint(engine, jobs, one),
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

function runAgainEndpoint(engine: Engine, jobs: JobReader, one: Show): Endpoint {
  return endpoint(routes.runAgain, async ({ params, caller, request }) => {
    const jobId = checkJobId(params.job_id)
    const answer = await engine.runAgain(jobId, { by: caller.name })
    if (answer.ranAgain) {
      const again = await jobs.changed(answer.jobId, callerKey({ caller, request }))
      return { body: await one(again), headers: { location: `/jobs/${again.jobId}`, ...retryAfter(again) } }
    }
    if (answer.why === 'not_found') throw notFound(jobId)
    if (answer.why !== 'not_failed') throw conflictOf(answer)
    throw new ApiError(
      'job_not_failed',
      `Job ${jobId} is ${answer.status}: only a failed or cancelled one is run again.`,
      {
        details: { job_id: jobId, status: answer.status },
      },
    )
  })
}
