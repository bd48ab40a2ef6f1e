import type { Attempt } from '../attempt/attempt.ts'

/**
 * Keeps the time of attempts that have a timeout, from their claim on. When it has passed, the handler is told to stop;
 * one that has not ended a grace later is late.
 */
export class Timeouts {
  readonly #graceMs: number
  readonly #onLate: (attempt: Attempt) => void
  readonly #timers = new Map<Attempt, NodeJS.Timeout>()

  constructor(graceMs: number, onLate: (attempt: Attempt) => void) {
    this.#graceMs = graceMs
    this.#onLate = onLate
  }

  /** `claimedAt` is performance.now() from before the claim was sent: by Postgres's clock it was not earlier. */
  watch(attempt: Attempt, claimedAt: number): void {
    const { timeoutMs } = attempt.claimed
    if (timeoutMs === undefined) return
    const leftMs = Math.max(0, claimedAt + timeoutMs - performance.now())
    this.#timers.set(
      attempt,
      setTimeout(() => this.#passed(attempt), leftMs),
    )
  }

  drop(attempt: Attempt): void {
    clearTimeout(this.#timers.get(attempt))
    this.#timers.delete(attempt)
  }

  #passed(attempt: Attempt): void {
    attempt.abort('timed_out')
    // Whoever told it to stop before that keeps the time, except after a rejection, which waits for the handler's end.
    if (attempt.abortReason !== 'timed_out' && attempt.abortReason !== 'unhandled_rejection') return
    this.#timers.set(
      attempt,
      setTimeout(() => this.#onLate(attempt), this.#graceMs),
    )
  }
}
