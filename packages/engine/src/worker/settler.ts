import { setTimeout as sleep } from 'node:timers/promises'
import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import { Batches } from '../batches.ts'
import { hadNoConnection, isLockTimeout, mayPass } from '../database/failure.ts'
import type { Settled } from '../lifecycle/outcome.ts'
import type { Logger } from '../logger.ts'

/** What became of an outcome: written, refused by the fence, or given up because it could not be written. */
export type Reported = Settled | typeof notWritten

const notWritten = { settled: false, why: 'not_written' } as const

interface Waiting {
  attempt: Attempt
  outcome: Outcome
  done: (reported: Reported) => void
}

type Write = (settlements: readonly { attempt: Attempt; outcome: Outcome }[]) => Promise<Settled[]>

const firstDelayMs = 50
const maxDelayMs = 2_000
/** How often to write many outcomes in one statement, or one, where Postgres can be reached. */
const triesTogether = 3
const triesAlone = 30
/** How many outcomes are written at once, once they are written each by itself. */
const lanesApart = 4
/** How long a last try may take. */
const lastTryMs = 1_000

/**
 * Writes outcomes, many in one statement.
 *
 * An outcome is fixed before it comes here. A write that fails for want of a connection is repeated with the same fence
 * until it is known to have landed or to have been refused: a success never becomes a failure because Postgres was away.
 */
export class Settler {
  readonly #write: Write
  readonly #batches: Batches<Waiting>
  /** For those that may have to wait for a lock: each by itself, and few at a time. */
  readonly #apart: Batches<Waiting>
  readonly #logger: Logger
  readonly #unwritten = new Map<Attempt, Waiting>()
  readonly #hurry = new AbortController()
  #gaveUp = false

  constructor(write: Write, maxBatch: number, logger: Logger) {
    this.#write = write
    this.#batches = new Batches((some) => this.#writeAll(some), maxBatch)
    this.#apart = new Batches((some) => this.#writeAll(some), 1)
    this.#logger = logger
  }

  /** Resolves when the outcome is committed, or refused, or given up. */
  report(attempt: Attempt, outcome: Outcome): Promise<Reported> {
    return new Promise((done) => {
      const waiting = { attempt, outcome, done }
      this.#unwritten.set(attempt, waiting)
      if (attempt.mayBeHeld) this.#apart.add(waiting)
      else this.#batches.add(waiting)
      if (this.#gaveUp) abandonSoon(waiting)
    })
  }

  /** From now on everything is tried once more, and not for long: what is not written then is left to the leases. */
  giveUp(): void {
    this.#gaveUp = true
    this.#hurry.abort()
    for (const waiting of this.#unwritten.values()) abandonSoon(waiting)
  }

  /** True from the report of an outcome until that is committed, refused or given up. */
  isWriting(attempt: Attempt): boolean {
    return this.#unwritten.has(attempt)
  }

  async #writeAll(some: readonly Waiting[]): Promise<void> {
    const reported = await this.#persistently(some)
    if (reported === 'apart') return this.#writeApart(some)
    for (let nth = 0; nth < some.length; nth += 1) {
      const { attempt, done } = some[nth] as Waiting
      this.#unwritten.delete(attempt)
      done(reported[nth] as Reported)
    }
  }

  /** What became of them; or that they have to be written each by itself. */
  async #persistently(some: readonly Waiting[]): Promise<Reported[] | 'apart'> {
    for (let tries = 1, delayMs = firstDelayMs; ; tries += 1, delayMs = Math.min(maxDelayMs, delayMs * 2)) {
      try {
        return await this.#write(some)
      } catch (error) {
        const passes = mayPass(error)
        this.#logger.error({ err: error, outcomes: some.length }, 'settlement_not_written')
        // One outcome that can never be written must not keep the others from being written; nor may all of them together
        // be too much for Postgres, for ever.
        const refused = hadNoConnection(error) ? 0 : tries
        if (some.length > 1 && (!passes || isLockTimeout(error) || refused >= triesTogether)) return 'apart'
        if (!passes || this.#gaveUp || refused >= triesAlone) return some.map(() => notWritten)
      }
      await sleep(delayMs * (0.5 + Math.random()), undefined, { signal: this.#hurry.signal }).catch(() => {})
    }
  }

  // A few side by side, each answered when it is done: one that waits for a lock must not keep the others waiting.
  async #writeApart(some: readonly Waiting[]): Promise<void> {
    const left = [...some]
    const lane = async () => {
      for (let one = left.shift(); one !== undefined; one = left.shift()) await this.#writeAll([one])
    }
    await Promise.all(Array.from({ length: lanesApart }, lane))
  }
}

function abandonSoon({ done }: Waiting): void {
  setTimeout(() => done(notWritten), lastTryMs).unref() // does nothing to what is done by then
}
