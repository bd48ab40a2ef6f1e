import { FencepostApiError, WaitTimeoutError } from '@fencepost/client'
import type { FencepostError } from '@fencepost/engine'
import type { ApiError, ServerStartError } from '@fencepost/server'
import type { Exit } from './exit-codes.ts'

/** What was typed, or configured, cannot be used. */
export class UsageError extends Error {
  /** The command whose help tells more. */
  readonly command: string | undefined

  constructor(message: string, options: { command?: string | undefined; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'UsageError'
    this.command = options.command
  }
}

/** What was asked for cannot be done, for a reason that has an exit code of its own. */
export class CommandError extends Error {
  readonly code: string
  readonly exit: Exit

  constructor(code: string, exit: Exit, message: string) {
    super(message)
    this.name = 'CommandError'
    this.code = code
    this.exit = exit
  }
}

/** An error as it is told, and the exit code that it ends with. */
export interface Failure {
  exit: Exit
  code: string
  message: string
  details: Readonly<Record<string, unknown>>
  /** What to do now. */
  hint?: string | undefined
}

/** What to say about an error, whoever threw it. */
export function failureOf(error: unknown): Failure {
  if (error instanceof UsageError) {
    const help = error.command === undefined ? 'fencepost --help' : `fencepost ${error.command} --help`
    return { exit: 'usage', code: 'usage', message: error.message, details: {}, hint: `See: ${help}` }
  }
  if (error instanceof CommandError) return { exit: error.exit, code: error.code, message: error.message, details: {} }
  if (error instanceof FencepostApiError) return ofApi(error)
  if (isNamed<FencepostError>(error, 'FencepostError')) return ofEngine(error)
  if (isNamed<ApiError>(error, 'ApiError')) {
    const { code, message, details, status } = error
    return { exit: exitOfStatus(status), code, message, details }
  }
  if (isNamed<ServerStartError>(error, 'ServerStartError')) return ofServer(error)
  if (error instanceof WaitTimeoutError) {
    return { exit: 'unavailable', code: 'wait_timeout', message: error.message, details: { job_id: error.jobId } }
  }
  return ofDriver(error) ?? { exit: 'failed', code: 'error', message: messageOf(error), details: {} }
}

// By name: importing the engine and the server, to tell errors that most commands never see, takes longer than those.
function isNamed<E extends Error>(error: unknown, name: E['name']): error is E {
  return error instanceof Error && error.name === name
}

function ofApi(error: FencepostApiError): Failure {
  const { code, status, message, details } = error
  // Whoever answered is no server of ours, so its status says nothing about jobs.
  const answered = code === 'answer_unreadable' ? 'failed' : exitOfStatus(status)
  const exit = error.retryable ? 'unavailable' : answered
  const failure: Failure = { exit, code, message, details }
  if (code === 'unreachable') {
    return { ...failure, hint: 'Is a server running there? Start one with `fencepost up`, or give --url.' }
  }
  if (status === 401)
    return { ...failure, hint: 'Give --token or FENCEPOST_TOKEN; `fencepost tokens create` makes one.' }
  if (code === 'route_unknown') return { ...failure, hint: 'Is --url right? It is where the API begins.' }
  if (code === 'drained')
    return { ...failure, hint: '`fencepost drain` says since when, `fencepost drain off` ends it.' }
  return failure
}

function exitOfStatus(status: number): Exit {
  if (status === 401 || status === 403) return 'denied'
  if (status === 404) return 'notFound'
  if (status === 409 || status === 422) return 'conflict'
  return status >= 400 && status < 500 ? 'usage' : 'failed'
}

const usageCodes = new Set([
  'options_invalid',
  'number_invalid',
  'key_invalid',
  'key_refused',
  'id_invalid',
  'operation_invalid',
])

function ofEngine({ code, message, details }: FencepostError): Failure {
  const failure = { code, message, details }
  if (code === 'database_unavailable') {
    return { ...failure, exit: 'unavailable', hint: 'Look at --database, or run `fencepost doctor`.' }
  }
  if (code === 'schema_missing' || code === 'schema_outdated') {
    return { ...failure, exit: 'failed', hint: 'Run `fencepost migrate`.' }
  }
  if (code === 'operation_unknown') return { ...failure, exit: 'notFound' }
  return { ...failure, exit: usageCodes.has(code) ? 'usage' : 'failed' }
}

function ofServer({ code, message }: ServerStartError): Failure {
  const failure = { code, message, details: {} }
  switch (code) {
    case 'options_invalid':
      return { ...failure, exit: 'usage' }
    case 'access_unprotected':
      return { ...failure, exit: 'usage', hint: 'Make one with `fencepost tokens create <name> --role admin`.' }
    case 'address_unavailable':
      return { ...failure, exit: 'failed', hint: 'Choose another port with --port, or stop what listens there.' }
  }
}

// What Postgres answers when one connects, before the engine has anything to say about it.
function ofDriver(error: unknown): Failure | undefined {
  const code = (error as { code?: unknown } | null)?.code
  const failure = { message: messageOf(error), details: {} }
  switch (code) {
    case '28P01':
    case '28000':
    case '42501':
      return {
        ...failure,
        exit: 'denied',
        code: 'database_denied',
        hint: 'Look at the user and password in --database.',
      }
    case '3D000':
      return { ...failure, exit: 'notFound', code: 'database_not_found' }
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'ETIMEDOUT':
      return { ...failure, exit: 'unavailable', code: 'database_unavailable', hint: 'Look at --database.' }
    default:
      return undefined
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}
