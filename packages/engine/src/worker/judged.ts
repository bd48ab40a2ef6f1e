import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Operation } from '../operation.ts'

const timedOut: Outcome = { kind: 'timed_out', handlerRuns: false }

/** The outcome to report. What a handler has done in its grace is done. One that throws because it was told to stop has not failed: its job is given back, unless its time was over. */
export function judged(attempt: Attempt, outcome: Outcome, operation: Operation | undefined): Outcome {
  const { abortReason } = attempt
  if (abortReason === 'timed_out' && (outcome.kind === 'failed' || outcome.kind === 'released')) return timedOut
  if (abortReason === undefined || outcome.kind !== 'failed') return outcome
  if (abortReason === 'unhandled_rejection') return outcome // it was told to stop because it has failed
  return abortReason === 'shutdown' ? shutdownOutcome(operation) : { kind: 'released', reason: abortReason }
}

/** What becomes of a running job that is taken from its handler when its worker stops. */
export function takenOutcome(attempt: Attempt, operation: Operation | undefined): Outcome {
  if (attempt.completed !== undefined) return attempt.completed // written by the handler itself
  return attempt.abortReason === 'unhandled_rejection' && attempt.rejected !== undefined
    ? attempt.rejected
    : shutdownOutcome(operation)
}

/**
 * True for a job that may not be given back while its handler goes on: it has a lock or slot, the handler runs in this
 * process, which cannot end it, and the process itself is not about to end.
 */
export function keepsItsJob({ claimed }: Attempt, operation: Operation | undefined, processEnds: boolean): boolean {
  if (processEnds || operation?.isolation === 'process') return false
  return claimed.lockKey !== undefined || claimed.slotKey !== undefined
}

/** What becomes of a running job when its worker stops: what its operation says. */
function shutdownOutcome(operation: Operation | undefined): Outcome {
  if (operation?.onShutdown !== 'fail') return { kind: 'released', reason: 'shutdown' }
  const error = 'Worker received SIGTERM'
  return { kind: 'failed', error, errorCode: 'shutdown', permanent: true, steps: [] }
}
