import { setTimeout as sleep } from 'node:timers/promises'
import { cutOff } from '../database/hang-up.ts'
import { FencepostError } from '../errors.ts'
import type { Fence } from '../lifecycle/outcome.ts'
import type { TransactionClient } from './transaction.ts'

/*
 * The transactions that one handler has open. Each holds the row of its job, so that nothing can be settled before it has
 * ended; and the outcomes of other jobs, written by the same statement, would wait with it. A handler that returns
 * without waiting for its transactions is therefore waited for, apart from all others and not for ever.
 */

export class OpenTransactions {
  readonly #fence: Fence
  readonly #open = new Set<OpenTransaction>()
  #isOver = false
  #handlerEnded = false

  constructor(fence: Fence) {
    this.#fence = fence
  }

  get size(): number {
    return this.#open.size
  }

  /** True while one of them has its connection and holds the job's row. */
  get atWork(): boolean {
    return [...this.#open].some(({ isAtWork }) => isAtWork)
  }

  /** Runs one transaction, which is open until this has ended. */
  async run<T>(transact: (one: OpenTransaction) => Promise<T>): Promise<T> {
    if (this.#isOver) throw leftOpen(this.#fence)
    if (this.#handlerEnded) throw begunLate(this.#fence)
    const one = new OpenTransaction()
    this.#open.add(one)
    try {
      return await transact(one)
    } finally {
      this.#open.delete(one)
      one.end()
    }
  }

  /** The handler has ended: what is open may go on, but no other is begun. */
  close(): void {
    this.#handlerEnded = true
  }

  /** Waits until all have ended; what is open after `graceMs` is rolled back. True when nothing had to be. */
  async end(graceMs: number): Promise<boolean> {
    const stop = new AbortController()
    const late = sleep(graceMs, true, { signal: stop.signal }).catch(() => true)
    while (this.#open.size > 0 && (await Promise.race([this.#allEnded(), late])) !== true);
    stop.abort()
    if (this.#open.size === 0) return true
    this.#isOver = true
    for (const one of this.#open) one.giveUp(leftOpen(this.#fence))
    await this.#allEnded()
    return false
  }

  async #allEnded(): Promise<void> {
    await Promise.all([...this.#open].map(({ ended }) => ended))
  }
}

/** One of them. */
class OpenTransaction {
  readonly ended: Promise<void>
  readonly #givenUp: Promise<never>
  #end: () => void = () => {}
  #giveUp: (error: FencepostError) => void = () => {}
  #error: FencepostError | undefined
  #client: TransactionClient | undefined

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    this.#givenUp = new Promise((_, reject) => {
      this.#giveUp = reject
    })
    this.#givenUp.catch(() => {}) // whoever works in it hears of it
  }

  get isAtWork(): boolean {
    return this.#client !== undefined
  }

  /** Does the handler's part of the transaction, until that has ended or is given up. */
  async work<T>(client: TransactionClient, work: (client: TransactionClient) => Promise<T>): Promise<T> {
    if (this.#error !== undefined) throw this.#error
    this.#client = client
    return Promise.race([this.#givenUp, work(client)])
  }

  // The handler still has the client, and would write without its transaction: nobody may use that connection again.
  giveUp(error: FencepostError): void {
    this.#error = error
    if (this.#client !== undefined) cutOff(this.#client)
    this.#giveUp(error)
  }

  end(): void {
    this.#end()
  }
}

/** The error of an attempt whose handler has returned without waiting for its transaction. */
export function leftOpen({ jobId, attemptId }: Fence): FencepostError {
  return new FencepostError(
    'transaction_left_open',
    `The handler of job ${jobId} returned while a transaction of its own was open. It did not end in time and was ` +
      'rolled back. Await attempt.transaction() and attempt.complete() in the handler.',
    { details: { jobId, attemptId } },
  )
}

function begunLate({ jobId, attemptId }: Fence): FencepostError {
  return new FencepostError(
    'transaction_left_open',
    `The handler of job ${jobId} had returned when it began a transaction, which was refused: its attempt is being ` +
      'settled. Await everything that calls attempt.transaction() or attempt.complete() in the handler.',
    { details: { jobId, attemptId } },
  )
}

/** True for either error: its attempt is already about to be settled. */
export function isLeftOpen(error: unknown): boolean {
  return error instanceof FencepostError && error.code === 'transaction_left_open'
}
