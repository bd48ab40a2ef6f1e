import { FencepostError } from '../errors.ts'

// Class 08 is connection trouble; the rest are: too many connections, a server that stops, crashes, starts or has no
// patience with an idle session, and one that only reads, which after a failover is no longer the one to talk to.
const unavailable = /^(08...|53300|57P0[1235]|25006|25P03)$/
const socket =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|E(HOST|NET)UNREACH|E(HOST|NET)DOWN|ENOTFOUND|EAI_AGAIN|ENOENT)$/
// Short of space or memory; rolled back for the sake of others, more often than was repeated at once; a lock that was
// not to be had; cancelled by somebody.
const passing = /^(53...|40...|55P03|57014)$/
const driverMessages =
  /connection terminated|connection ended|timeout exceeded when trying to connect|not queryable|query read timeout/i

/**
 * True for what is worth repeating at once, having been rolled back whole: a deadlock, a serialization failure, a stale
 * plan, and a claim that the last guard of a slot stopped, because its snapshot was older than what happened in the slot.
 */
export function wantsRepeat(error: unknown): boolean {
  if (isPlanStale(error)) return true
  const code = codeOf(error)
  if (code === '23505') return (error as { constraint?: unknown }).constraint === 'live_jobs_one_running_per_slot'
  return code === '40P01' || code === '40001'
}

/**
 * Turns a driver's error into ours where there is something to say about it; anything else comes back as it was.
 * `applied` is what is known about the effect: a statement cut off while committing may have been applied.
 */
export function failure(error: unknown, doing: string, applied: 'no' | 'unknown'): unknown {
  if (error instanceof FencepostError) return error
  const code = codeOf(error)
  if (code === '42P01' || code === '3F000' || code === '42883') {
    return new FencepostError(
      'schema_missing',
      `${doing}: the schema is not there (${messageOf(error)}). Run the migrations of this engine first.`,
      { cause: error },
    )
  }
  if (!isConnectionLost(error)) return error
  const why = isUnanswered(error) ? 'it did not answer in time' : messageOf(error)
  return new FencepostError(
    'database_unavailable',
    `${doing}: Postgres could not be reached (${why}). ` +
      (applied === 'no'
        ? 'Nothing was written; try again.'
        : 'It is not known whether this was written: the connection broke while it ran. Repeating is safe for ' +
          'everything an attempt does, because of its fence; for a submission only with a dedup key.'),
    { cause: error, details: { doing, applied }, retryable: true },
  )
}

/** The error for a pool of this size that had no connection to give, though Postgres is there. */
export function poolExhausted(
  doing: string,
  connections: number,
  inTransactions: number,
  cause: unknown,
): FencepostError {
  return new FencepostError(
    'pool_exhausted',
    `${doing}: all ${connections} connections of the pool are in use, ${inTransactions} of them by open transactions, and ` +
      'none became free in time. Nothing was written. Do not wait for the engine inside a transaction, or give it the ' +
      "transaction's client; keep transactions short; or raise maxConnections.",
    { cause, details: { doing, applied: 'no', connections, inTransactions }, retryable: true },
  )
}

/** True when a connection of the pool was waited for in vain, because all of them are in use. */
export function isWaitedInVain(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect'
}

/** True for what may be gone when the statement is sent again later. */
export function mayPass(error: unknown): boolean {
  return hadNoConnection(error) || passing.test(codeOf(error) ?? '')
}

/**
 * True when a statement was prepared before a migration changed the type of its result. It was not run, and on that
 * connection it never will be.
 */
export function isPlanStale(error: unknown): boolean {
  return codeOf(error) === '0A000' && (error as { routine?: unknown }).routine === 'RevalidateCachedQuery'
}

/** True when a statement has waited for a lock as long as it may. */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03'
}

/** True when a statement was not answered in its time. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof Error && error.message === 'Query read timeout'
}

/** True when the statement was cut off, or not even sent, for want of a connection. */
export function hadNoConnection(error: unknown): boolean {
  return isConnectionLost(error) || (error instanceof FencepostError && error.code === 'pool_exhausted')
}

/** True when the connection is no good any more, or Postgres gave none. */
export function isConnectionLost(error: unknown): boolean {
  if (error instanceof FencepostError) return error.code === 'database_unavailable'
  const code = codeOf(error)
  return (code !== undefined && (unavailable.test(code) || socket.test(code))) || driverMessages.test(messageOf(error))
}

function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join('; ')
  return error instanceof Error ? error.message : String(error)
}
