import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import { Batches } from '../batches.ts'
import { FencepostError } from '../errors.ts'
import type { Settled } from '../lifecycle/outcome.ts'
import type { Logger } from '../logger.ts'

/** What became of an outcome: written, refused by the fence, or given up because it could not be written. */
export type Reported = Settled | { settled: false; why: 'not_written' }

interface Waiting {
  attempt: Attempt
  outcome: Outcome
  done: (reported: Reported) => void
}

type Write = (settlements: readonly { attempt: Attempt; outcome: Outcome }[]) => Promise<Settled[]>

const firstDelayMs = 50
const maxDelayMs = 2_000

/**
 * Writes outcomes, many in one statement.
 *
 * An outcome is fixed before it comes here. A write that fails for want of a connection is repeated with the same fence
 * until it is known to have landed or to have been refused: a success never becomes a failure because Postgres was away.
 */
export class Settler {
  readonly #write: Write
  readonly #batches: Batches<Waiting>
  readonly #logger: Logger
  #gaveUp = false

  constructor(write: Write, maxBatch: number, logger: Logger) {
    this.#write = write
    this.#batches = new Batches((some) => this.#writeAll(some), maxBatch)
    this.#logger = logger
  }

  /** Resolves when the outcome is committed, or refused, or given up. */
  report(attempt: Attempt, outcome: Outcome): Promise<Reported> {
    return new Promise((done) => {
      this.#batches.add({ attempt, outcome, done })
    })
  }

  /** Stops repeating: what cannot be written now is left to the leases. */
  giveUp(): void {
    this.#gaveUp = true
  }

  async #writeAll(some: readonly Waiting[]): Promise<void> {
    const reported = await this.#persistently(some)
    for (const [nth, { done }] of some.entries()) done(reported[nth] as Reported)
  }

  async #persistently(some: readonly Waiting[]): Promise<Reported[]> {
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(maxDelayMs, delayMs * 2)) {
      try {
        return await this.#write(some)
      } catch (error) {
        const away = error instanceof FencepostError && error.retryable
        this.#logger.error({ err: error, outcomes: some.length }, 'settlement_not_written')
        // One outcome that can never be written must not keep the others from being written.
        if (!away && some.length > 1) return this.#oneByOne(some)
        if (!away || this.#gaveUp) return some.map(() => ({ settled: false, why: 'not_written' }))
      }
      await new Promise((resolve) => setTimeout(resolve, delayMs * (0.5 + Math.random())))
    }
  }

  async #oneByOne(some: readonly Waiting[]): Promise<Reported[]> {
    const reported: Reported[] = []
    for (const one of some) reported.push(...(await this.#persistently([one])))
    return reported
  }
}
