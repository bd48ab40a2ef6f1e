import { routes, type Job as JobAnswer, type Submission } from '@fencepost/client'
import type { CallerClient, Engine, Logger, Submitted, SubmitOptions } from '@fencepost/engine'
import type { FastifyRequest } from 'fastify'
import type { Presenter } from '../application.ts'
import { callerKey, endpoint, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import { aboutRequest } from '../http/access-log.ts'
import { conflictOf } from './conflict.ts'
import { once, requestHash } from './idempotency.ts'
import type { JobReader } from './job-reader.ts'
import { retryAfter } from './retry-after.ts'

/** Submitting over HTTP, with or without an Idempotency-Key. */
export function submitEndpoint(engine: Engine, jobs: JobReader, present: Presenter, logger: Logger): Endpoint {
  return endpoint(routes.submitJob, async ({ params, body, caller, request }) => {
    const joined = (jobId: string) => logSubmission(logger, request, { job_id: jobId, operation: params.name })
    const operation = engine.operations.find(({ name }) => name === params.name)
    if (operation === undefined) {
      const name = JSON.stringify(params.name.slice(0, 64))
      throw new ApiError(
        'operation_unknown',
        `There is no operation ${name} here; GET /operations lists those there are.`,
      )
    }
    const { payload, ...rest } = body
    const options = { ...optionsOf(rest), by: caller.name }
    const show = async (jobId: string, client?: CallerClient) => {
      const job = await (client === undefined
        ? jobs.changed(jobId, callerKey({ caller, request }))
        : engine.get(jobId, { client }))
      if (job === undefined) throw new Error(`job ${jobId} was submitted and is not there`)
      return present.accepted(job) as JobAnswer
    }
    const key = idempotencyKey(request.headers['idempotency-key'])
    if (key === undefined) {
      const jobId = acceptedJobId(await engine.submit(operation, payload, options))
      joined(jobId)
      return accept(await show(jobId))
    }
    const { answer, replayed } = await once(
      engine.database,
      { caller: caller.tokenId ?? caller.name, key, hash: requestHash(operation.name, body) },
      async (client) => {
        const jobId = acceptedJobId(await engine.submit(operation, payload, { ...options, client }))
        return show(jobId, client)
      },
    )
    if (replayed) return accept(answer, { 'idempotency-replayed': 'true' })
    engine.wake(answer.queue)
    joined(answer.job_id)
    return accept(answer)
  })
}

// The one line that has both: a request, or its trace, is followed to its job and back. Whoever sends neither gets no line
// for each job, unless debugging.
function logSubmission(logger: Logger, request: FastifyRequest, job: Record<string, unknown>): void {
  const { 'x-request-id': requestId, traceparent } = request.headers
  const line = { ...aboutRequest(request), ...job }
  if (requestId === undefined && traceparent === undefined) logger.debug?.(line, 'job_submitted')
  else logger.info(line, 'job_submitted')
}

function accept(body: JobAnswer, headers: Record<string, string> = {}) {
  return { body, headers: { ...acceptedHeaders(body.job_id), ...headers } }
}

/** The headers of an answer that a job was accepted with. */
export function acceptedHeaders(jobId: string): Record<string, string> {
  return { location: `/jobs/${jobId}`, ...retryAfter({ status: 'pending' }) }
}

/** The id of a job that was accepted, or the refusal that its submission came to. */
export function acceptedJobId(answer: Submitted): string {
  if (answer.submitted) return answer.jobId
  throw conflictOf(answer)
}

function optionsOf(body: Omit<Submission, 'payload'>): SubmitOptions {
  const options = {
    priority: body.priority,
    runAfter: body.run_after,
    delayMs: body.delay_ms,
    maxAttempts: body.max_attempts,
    queue: body.queue,
    lockKey: body.lock_key,
    slotKey: body.slot_key,
    dedupKey: body.dedup_key,
    onLocked: body.on_locked,
    pipelineId: body.pipeline_id,
    tags: body.tags,
    timeoutMs: body.timeout_ms,
    startBy: body.start_by,
    startWithinMs: body.start_within_ms,
  }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

const keyPattern = /^[\x21-\x7e]{1,255}$/

function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && keyPattern.test(header)) return header
  throw new ApiError('request_invalid', 'Idempotency-Key is not valid: give 1 to 255 printable ASCII characters.', {
    details: { issues: [{ path: 'headers.idempotency-key', message: 'give 1 to 255 printable ASCII characters' }] },
  })
}
