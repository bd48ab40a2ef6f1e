import { z } from 'zod'

/** Every error that the API answers with, by its code. docs/reference/errors.md lists the same table; a test compares. */
export const apiErrors = {
  request_invalid: {
    status: 400,
    meaning: 'A parameter, header or field of the body is missing, unknown or not valid.',
  },
  json_malformed: { status: 400, meaning: 'The body is not JSON in UTF-8.' },
  json_too_deep: { status: 400, meaning: 'The body is nested more deeply than is allowed.' },
  http_malformed: { status: 400, meaning: 'The request is not HTTP that can be understood.' },
  payload_invalid: { status: 400, meaning: 'The payload does not fit the schema of its operation.' },
  key_refused: {
    status: 400,
    meaning: 'The submission gives a lock, slot or dedup key that the operation makes itself, or takes from nobody.',
  },
  token_missing: { status: 401, meaning: 'The request carries no token, and tokens are in use.' },
  token_invalid: { status: 401, meaning: 'The token is not known, was revoked, or has expired.' },
  role_insufficient: { status: 403, meaning: 'The token has a role that may not do this.' },
  origin_refused: {
    status: 403,
    meaning: 'The request comes from a web page of another origin, or by a name not ours.',
  },
  route_unknown: { status: 404, meaning: 'There is no such route.' },
  job_not_found: { status: 404, meaning: 'There is no such job, or it was deleted.' },
  operation_unknown: { status: 404, meaning: 'This server does not know the operation.' },
  pipeline_not_found: { status: 404, meaning: 'No job belongs to this pipeline.' },
  bulk_act_not_found: { status: 404, meaning: 'There is no such act on jobs of a filter.' },
  schedule_not_found: { status: 404, meaning: 'There is no schedule of this name.' },
  table_not_found: { status: 404, meaning: 'The inventory has no such table.' },
  queue_not_found: { status: 404, meaning: 'There can be no queue of this name.' },
  token_not_found: { status: 404, meaning: 'There is no such token.' },
  method_not_allowed: { status: 405, meaning: 'The route has no such method; the header Allow names those it has.' },
  request_timeout: { status: 408, meaning: 'The request did not arrive in time.' },
  lock_held: { status: 409, meaning: 'Another job holds the lock; details name it.' },
  duplicate: { status: 409, meaning: 'A job with this dedup key is pending or running; details name it.' },
  job_finished: { status: 409, meaning: 'The job has already ended.' },
  job_unfinished: { status: 409, meaning: 'The job is pending or running: cancel it first.' },
  job_not_failed: { status: 409, meaning: 'The job has not failed and was not cancelled, so it is not run again.' },
  job_not_running: { status: 409, meaning: 'The job is not running, so there is nothing to recover.' },
  job_not_stale: { status: 409, meaning: 'The claim of the job is too young to be taken for stuck.' },
  job_waiting: { status: 409, meaning: 'The job waits for its children: no worker has it.' },
  bulk_token_invalid: { status: 409, meaning: 'The token is not known, or older than a minute: make a new preview.' },
  bulk_set_grown: {
    status: 409,
    meaning: 'By more than a tenth more jobs fit than were previewed: make a new preview.',
  },
  bulk_act_ended: { status: 409, meaning: 'The act has already ended.' },
  nothing_to_abort: { status: 409, meaning: 'All jobs of the pipeline have ended.' },
  token_name_taken: { status: 409, meaning: 'A token of this name is in use.' },
  token_last_admin: { status: 409, meaning: 'It is the last token of an admin: make another one first.' },
  token_revoked: { status: 409, meaning: 'The token was already revoked.' },
  body_too_large: { status: 413, meaning: 'The body, or the payload in it, is larger than is allowed.' },
  media_type_unsupported: { status: 415, meaning: 'The body is of another type than application/json.' },
  table_name_invalid: { status: 422, meaning: 'A database or table has a name that cannot be addressed.' },
  idempotency_mismatch: { status: 422, meaning: 'The Idempotency-Key was used before with another request.' },
  rate_limited: { status: 429, meaning: 'Too many requests; the header Retry-After says when to come back.' },
  headers_too_large: { status: 431, meaning: 'The headers are larger than is allowed.' },
  internal_error: { status: 500, meaning: 'Something is wrong with the server; its log says what, by the request id.' },
  drained: { status: 503, meaning: 'New work is refused while drain is on.' },
  shutting_down: { status: 503, meaning: 'This server is stopping: try again, at another one or later.' },
  database_unavailable: { status: 503, meaning: 'Postgres could not be reached, or the connection broke.' },
  overloaded: { status: 503, meaning: 'Too many requests of this caller wait for large values already.' },
  catalog_unavailable: { status: 503, meaning: 'The catalog or the storage of the table cannot be reached.' },
  not_ready: { status: 503, meaning: 'The database cannot be used, or its schema is of another version.' },
} as const

export type ApiErrorCode = keyof typeof apiErrors

const codes = Object.keys(apiErrors) as [ApiErrorCode, ...ApiErrorCode[]]

export const errorAnswer = z.object({
  error: z.object({
    code: z.string().describe(`One of: ${codes.join(', ')}; or a code of the application.`),
    message: z.string(),
    details: z.record(z.string(), z.unknown()),
  }),
})

/** True for a code of the API's own; an application may have others. */
export function isApiErrorCode(code: string): code is ApiErrorCode {
  return Object.hasOwn(apiErrors, code)
}

// No answer at all, too late, too often, and a server that is away: in its own words, or in those of a proxy.
const retryableStatuses: ReadonlySet<number> = new Set([0, 408, 429, 502, 503, 504])

/** What a call throws when the server answers with an error, or not at all. */
export class FencepostApiError extends Error {
  /** A code of the table, one of the application, or `unreachable` / `answer_unreadable` where no server of ours spoke. */
  readonly code: ApiErrorCode | 'unreachable' | 'answer_unreadable' | (string & {})
  /** 0 when there was no answer. */
  readonly status: number
  readonly details: Readonly<Record<string, unknown>>
  /** What the answer asked to wait before trying again. */
  readonly retryAfterSeconds: number | undefined

  constructor(
    answer: { code: FencepostApiError['code']; message: string; status: number },
    options: { details?: Record<string, unknown>; retryAfterSeconds?: number | undefined; cause?: unknown } = {},
  ) {
    super(answer.message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'FencepostApiError'
    this.code = answer.code
    this.status = answer.status
    this.details = options.details ?? {}
    this.retryAfterSeconds = options.retryAfterSeconds
  }

  /** True when the same call may succeed later. Repeating a submission is safe with an idempotency key. */
  get retryable(): boolean {
    return retryableStatuses.has(this.status)
  }
}
