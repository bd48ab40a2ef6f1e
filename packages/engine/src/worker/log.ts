import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Logger } from '../logger.ts'
import type { Reported } from './settler.ts'

/** A handler begins. */
export function logStarted(logger: Logger, attempt: Attempt): void {
  logger.debug?.({ ...namesOf(attempt), attempt: attempt.claimed.attempts }, 'job_started')
}

/** What a handler came to has been written, or could not be. */
export function logSettled(logger: Logger, attempt: Attempt, outcome: Outcome, reported: Reported): void {
  const log = outcome.kind === 'failed' ? 'warn' : 'debug'
  logger[log]?.({ ...namesOf(attempt), ...summaryOf(outcome), ...reported }, 'job_settled')
}

/** A promise that the handler forgot was rejected, while it ran or after it had ended. */
export function logRejection(logger: Logger, attempt: Attempt, error: unknown, ended: boolean): void {
  logger.error({ ...namesOf(attempt), err: error, handler_ended: ended }, 'handler_rejection_unhandled')
}

/** A handler had not ended when it should have. */
export function logOutlivedGrace(logger: Logger, attempt: Attempt): void {
  logger.warn(namesOf(attempt), 'handler_outlived_grace')
}

function namesOf({ claimed }: Attempt): Record<string, unknown> {
  return { job_id: claimed.jobId, attempt_id: claimed.attemptId, operation: claimed.operation }
}

/** What of an outcome belongs in a log line. */
function summaryOf(outcome: Outcome): Record<string, unknown> {
  const { kind } = outcome
  return kind === 'failed' ? { outcome: kind, error: outcome.error, error_code: outcome.errorCode } : { outcome: kind }
}
