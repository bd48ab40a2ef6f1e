import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Operation } from '../operation.ts'

/** The outcome to report. A handler that throws because it was told to stop has not failed: its job is given back. */
export function judged(attempt: Attempt, outcome: Outcome, operation: Operation | undefined): Outcome {
  const { abortReason } = attempt
  if (abortReason === undefined || outcome.kind !== 'failed') return outcome
  return abortReason === 'shutdown' ? shutdownOutcome(operation) : { kind: 'released', reason: abortReason }
}

/** What becomes of a running job when its worker stops: what its operation says. */
export function shutdownOutcome(operation: Operation | undefined): Outcome {
  if (operation?.onShutdown !== 'fail') return { kind: 'released', reason: 'shutdown' }
  const error = 'Worker received SIGTERM'
  return { kind: 'failed', error, errorCode: 'shutdown', permanent: true, steps: [] }
}
