import { apiErrors, type ApiErrorCode } from '@fencepost/client'
import { FencepostError, type ErrorCode } from '@fencepost/engine'

/** A refusal, thrown by whatever handles a request and answered as `{error: {code, message, details}}`. */
export class ApiError extends Error {
  readonly code: string
  readonly status: number
  readonly details: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  /** An application's own code needs a status too. */
  constructor(
    code: ApiErrorCode | { code: string; status: number },
    message: string,
    options: { details?: Record<string, unknown>; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ApiError'
    this.code = typeof code === 'string' ? code : code.code
    this.status = typeof code === 'string' ? apiErrors[code].status : code.status
    this.details = options.details ?? {}
    this.headers = { ...(this.status === 503 ? { 'retry-after': '5' } : {}), ...options.headers }
  }

  get body() {
    return { error: { code: this.code, message: this.message, details: this.details } }
  }
}

// What callers can be told of the engine's errors. Those not listed are ours to repair, and are answered as 500.
const codeOfEngine: Partial<Record<ErrorCode, ApiErrorCode>> = {
  payload_invalid: 'payload_invalid',
  json_invalid: 'request_invalid',
  json_too_large: 'body_too_large',
  key_invalid: 'request_invalid',
  key_refused: 'key_refused',
  id_invalid: 'request_invalid',
  number_invalid: 'request_invalid',
  time_invalid: 'request_invalid',
  operation_invalid: 'request_invalid',
  options_invalid: 'request_invalid',
  schedule_invalid: 'request_invalid',
  operation_unknown: 'operation_unknown',
}

/** The refusal that an error comes to; undefined for one that says nothing to callers. */
export function refusalOf(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error
  if (!(error instanceof FencepostError)) return undefined
  const { code } = error
  // The driver's words name hosts and ports, which are not for callers.
  if (code === 'database_unavailable') {
    return new ApiError(code, 'The database cannot be reached at the moment; try again.', {
      details: error.details['applied'] === undefined ? {} : { applied: error.details['applied'] },
      cause: error,
    })
  }
  if (code === 'pool_exhausted') {
    const message = 'All connections of this server to its database are in use; try again.'
    return new ApiError('database_unavailable', message, { details: { applied: 'no' }, cause: error })
  }
  if (code === 'engine_closed') return new ApiError('shutting_down', 'This server is stopping.', { cause: error })
  if (code === 'schema_missing' || code === 'schema_outdated' || code === 'schema_newer') {
    return new ApiError('not_ready', 'The schema of the database is not the one of this release.', { cause: error })
  }
  const told = codeOfEngine[code]
  return told && new ApiError(told, error.message, { details: { ...error.details }, cause: error })
}
