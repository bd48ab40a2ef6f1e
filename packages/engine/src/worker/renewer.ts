import type { Attempt } from '../attempt/attempt.ts'
import type { Logger } from '../logger.ts'

type Renew = (attempts: readonly Attempt[]) => Promise<unknown>

/** How much of a lease may pass without a renewal before its handler is stopped: the rest is for it to stop in. */
const selfFenceShare = 0.8
const renewShare = 1 / 3
/** How often, in a lease, to see whether it is time for either. */
const ticksPerLease = 12
const minIntervalMs = 10

interface Held {
  attempt: Attempt
  /** When the claim or renewal that last succeeded was sent, by this process's steady clock: never later than Postgres's. */
  renewedAt: number
}

/**
 * Keeps the leases of everything this process holds, in one statement for all, three times in a lease. When Postgres
 * cannot be reached for so long that a lease could pass, the handler is told to stop before it does.
 */
export class Renewer {
  readonly #renew: Renew
  readonly #logger: Logger
  readonly #held = new Map<string, Held>()
  #timer: NodeJS.Timeout | undefined
  /** The lease that the timer was set for; one that comes later may be shorter. */
  #shortestMs = Infinity
  #stopped = false
  #renewing = false
  #sentAt = 0

  constructor(renew: Renew, logger: Logger) {
    this.#renew = renew
    this.#logger = logger
  }

  /** `claimedAt` is performance.now() from before the claim was sent. */
  hold(attempt: Attempt, claimedAt: number): void {
    const { attemptId, leaseMs } = attempt.claimed
    const held: Held = { attempt, renewedAt: claimedAt }
    this.#held.set(attemptId, held)
    // The answer to the claim may have come so late that the lease has passed, and somebody else has the job.
    if (isEndangered(held)) attempt.abort('database_unreachable')
    if (leaseMs < this.#shortestMs) this.#tickFor(leaseMs)
  }

  drop(attempt: Attempt): void {
    this.#held.delete(attempt.attemptId)
  }

  /** The attempt this fence names, if this process holds it. */
  find(attemptId: string): Attempt | undefined {
    return this.#held.get(attemptId)?.attempt
  }

  /** True when a lease could pass before Postgres is reached again: nothing new should be started. */
  get endangered(): boolean {
    const now = performance.now()
    for (const held of this.#held.values()) if (isEndangered(held, now)) return true
    return false
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #tickFor(leaseMs: number): void {
    if (this.#stopped) return
    clearTimeout(this.#timer)
    this.#shortestMs = leaseMs
    this.#timer = setTimeout(() => this.#tick(), intervalMs(leaseMs))
  }

  #tick(): void {
    this.#shortestMs = Infinity
    if (this.#held.size === 0) return
    const now = performance.now()
    let shortestMs = Infinity
    let oldest = 0
    for (const held of this.#held.values()) {
      if (isEndangered(held, now)) held.attempt.abort('database_unreachable')
      const { leaseMs } = held.attempt.claimed
      shortestMs = Math.min(shortestMs, leaseMs)
      oldest = Math.max(oldest, (now - Math.max(held.renewedAt, this.#sentAt)) / leaseMs)
    }
    if (oldest >= renewShare) void this.#renewAll()
    this.#tickFor(shortestMs)
  }

  // Not waited for by the clockwork above: a renewal that hangs must not keep handlers from being told.
  async #renewAll(): Promise<void> {
    if (this.#renewing || this.#held.size === 0) return
    this.#renewing = true
    const sentAt = performance.now()
    this.#sentAt = sentAt
    const held = [...this.#held.values()]
    try {
      await this.#renew(held.map(({ attempt }) => attempt))
      for (const one of held) one.renewedAt = sentAt
    } catch (error) {
      this.#logger.warn({ err: error, attempts: held.length }, 'leases_not_renewed')
      this.#sentAt = 0 // try again soon
    } finally {
      this.#renewing = false
    }
  }
}

function intervalMs(leaseMs: number): number {
  return Math.max(minIntervalMs, (leaseMs / ticksPerLease) * (0.9 + Math.random() * 0.2))
}

function isEndangered({ attempt, renewedAt }: Held, now = performance.now()): boolean {
  return now - renewedAt > attempt.claimed.leaseMs * selfFenceShare
}
