import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Context } from '../context.ts'
import { atMost } from './at-most.ts'
import { executeHere, watchRejections } from './in-process.ts'
import { IsolatedHandlers } from './isolated/isolated.ts'
import type { CheckedWorkOptions } from './options.ts'

const transactionsMs = 1_000

/** Runs handlers where their operations want them run: in this process, or in one of their own. */
export class Handlers {
  readonly #context: Context
  readonly #isolated: IsolatedHandlers | undefined
  readonly #unwatch: () => void
  readonly #graceMs: number

  constructor(context: Context, options: Pick<CheckedWorkOptions, 'operations' | 'concurrency' | 'graceMs'>) {
    this.#context = context
    this.#graceMs = options.graceMs
    const isolated = options.operations.filter(({ isolation }) => isolation === 'process')
    this.#isolated = isolated.length === 0 ? undefined : new IsolatedHandlers(context, isolated, options)
    this.#unwatch = watchRejections()
  }

  /** Sees to it that handlers can be run; throws when they cannot. */
  async start(): Promise<void> {
    try {
      await this.#isolated?.start()
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** Runs the attempt's handler and says what it came to. Never throws. */
  execute(attempt: Attempt): Promise<Outcome> {
    const isolated = this.#context.operations.get(attempt.claimed.operation)?.isolation === 'process'
    if (isolated && this.#isolated !== undefined) return this.#isolated.execute(attempt)
    return executeHere(this.#context, attempt, { graceMs: this.#graceMs })
  }

  /** Ends a handler that did not stop when told, where that can be done; resolves when it is gone. */
  async end(attempt: Attempt): Promise<void> {
    await this.#isolated?.end(attempt)
    // They hold the row of the job, which could not be given back. Not for long, and whatever Postgres says: what is still
    // held then is left to the lease.
    if (attempt.hasOpenTransactions)
      await atMost(
        transactionsMs,
        attempt.endTransactions(0).catch(() => {}),
      )
  }

  async close(): Promise<void> {
    await this.#isolated?.close()
    this.#unwatch()
  }
}
