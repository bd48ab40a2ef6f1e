import { checkInteger, checkKey } from '../check.ts'
import type { Context } from '../context.ts'
import type { Db } from '../database/database.ts'
import { checkId } from '../ids.ts'
import { claim, claimByIds, type Claimed, type ClaimOptions } from '../lifecycle/claim.ts'
import { claimPlain, type Place } from '../lifecycle/claim-plain.ts'
import type { Swept } from '../lifecycle/sweep.ts'
import { claimNames, findOperation, minLeaseMs, operationDefaults } from '../operation.ts'
import { Attempt } from './attempt.ts'

export interface EngineClaimOptions {
  limit?: number
  queue?: string
  /** Names of operations; all that the engine was opened with when left out. */
  operations?: readonly string[]
  workerId?: string
  leaseMs?: number
}

/** What claimPlain() got. */
export interface PlainBatch {
  attempts: Attempt[]
  /** Where the next one can begin, when this one got as much as it wanted. */
  last: Place | undefined
}

/** What one engine claims: options checked, attempts made, times measured. */
export class Claims {
  readonly #context: Context
  readonly #workerId: string
  readonly #sweep: () => Promise<Swept | undefined>

  constructor(context: Context, workerId: string, sweep: () => Promise<Swept | undefined>) {
    this.#context = context
    this.#workerId = workerId
    this.#sweep = sweep
  }

  /** Due jobs of a queue. Finding none, it sweeps, unless told not to, and looks once more. */
  async ofQueue(options: EngineClaimOptions, ifNone: 'sweep' | 'give up' = 'sweep'): Promise<Attempt[]> {
    const { database } = this.#context
    const wanted = this.#ofQueue(options)
    return this.#measured(wanted.queue, async () => {
      const found = await claim(database, wanted)
      const again = found.length === 0 && ifNone === 'sweep' && (await this.#sweptSomething())
      return again ? claim(database, wanted) : found
    })
  }

  /** Due jobs of a queue that are quickly claimed, from a place on: see claimPlain(). */
  async plain(db: Db, options: EngineClaimOptions, from: Place | undefined): Promise<PlainBatch> {
    const wanted = this.#ofQueue(options)
    let last: Place | undefined
    const attempts = await this.#measured(wanted.queue, async () => {
      const found = await claimPlain(db, { ...wanted, durable: this.#context.durableClaims }, from)
      if (found.claimed.length === wanted.limit) last = found.last
      return found.claimed
    })
    return { attempts, last }
  }

  /** Those of these jobs that can be claimed now. */
  async byIds(jobIds: readonly string[], options: EngineClaimOptions): Promise<Attempt[]> {
    const ids = jobIds.map((jobId) => checkId(jobId))
    const claimer = this.#claimer(options)
    return this.#measured(undefined, () => claimByIds(this.#context.database, ids, claimer))
  }

  async #measured(queue: string | undefined, work: () => Promise<Claimed[]>): Promise<Attempt[]> {
    const startedAt = performance.now()
    const found = await work()
    this.#context.telemetry.claimed(queue, performance.now() - startedAt, found)
    return found.map((claimed) => new Attempt(this.#context, claimed))
  }

  #ofQueue(options: EngineClaimOptions): ClaimOptions {
    const queue = options.queue ?? operationDefaults.queue
    return { ...this.#claimer(options), queue, limit: checkInteger(options.limit ?? 1, 'limit', 1, 10_000) }
  }

  async #sweptSomething(): Promise<boolean> {
    const swept = await this.#sweep()
    if (swept === undefined) return false
    const { expired, failed, timedOut, closed, freedLocks, handedLocks } = swept
    return [expired, failed, timedOut, closed, freedLocks, handedLocks].some(({ length }) => length > 0)
  }

  #claimer(options: EngineClaimOptions): Pick<ClaimOptions, 'leases' | 'workerId'> {
    const { operations } = this.#context
    const leases: Record<string, number> = {}
    for (const name of options.operations ?? operations.keys()) {
      const operation = findOperation(operations, name)
      const leaseMs = checkInteger(options.leaseMs ?? operation.leaseMs, 'leaseMs', minLeaseMs)
      for (const claimed of claimNames(operation)) leases[claimed] = leaseMs
    }
    return { leases, workerId: checkKey(options.workerId, 'workerId') ?? this.#workerId }
  }
}
