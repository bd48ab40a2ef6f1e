import type { Attempt } from '../attempt/attempt.ts'
import type { Claims, EngineClaimOptions, PlainBatch } from '../attempt/claims.ts'
import type { Place } from '../lifecycle/claim-plain.ts'
import type { Logger } from '../logger.ts'
import type { CheckedWorkOptions } from './options.ts'

/*
 * The part of a worker that claims. It looks where there may be something: in queues that were announced, in all of them
 * now and then, and in one that has just given all that was asked of it.
 *
 * At such a queue it goes on from where the last claim ended. What comes in before that place is found when the queue is
 * looked at from its beginning again: at once if it is announced, or else after a moment. A second claim is then sent
 * right behind the first, on the same connection: Postgres goes from one to the next while the handlers run here.
 */

/** How to claim from a queue. */
export interface QueueClaims {
  /** One call may follow another before that is answered. */
  plain: (options: EngineClaimOptions, from: Place | undefined) => Promise<PlainBatch>
  ofQueue: Claims['ofQueue']
}

/** What a fetcher needs of its worker. */
export interface FetcherPorts {
  claims: QueueClaims
  /** How many more jobs the worker wants to hold, with so many being claimed; none until it is worth a statement. */
  room: (claiming: number) => number
  /**
   * Takes jobs that were claimed, by a claim sent at that time of this process's steady clock, and starts them: now, or
   * in the next turn of the event loop.
   */
  accept: (attempts: readonly Attempt[], claimedAt: number, start: 'now' | 'soon') => void
  /** How long until the next job is due, as far as anybody knows. */
  msUntilDue: () => Promise<number | undefined>
}

/** A place in a queue's order: everything before it was claimed, unless it came in later. */
interface Continuation {
  place: Place
  until: number
}

type Found = 'none' | 'some' | 'all that was asked'

const firstRetryMs = 100
const maxRetryMs = 5_000
const minDueMs = 20
/** How long to go on from place to place before a queue is looked at from its beginning again. */
const continueMs = 500

/** Claims jobs for a worker until it is stopped. */
export class Fetcher {
  readonly #ports: FetcherPorts
  readonly #options: Pick<CheckedWorkOptions, 'queues' | 'operations' | 'pollMs'>
  readonly #operationNames: readonly string[]
  readonly #logger: Logger
  /** Queues that may have due jobs. */
  readonly #promising = new Set<string>()
  /** Where to go on in those that gave all that was asked. */
  readonly #places = new Map<string, Continuation>()
  /** How many jobs the claims that are under way may bring. */
  #claiming = 0
  #fetching: Promise<void> | undefined
  #scheduled = false
  #stopping = false
  #pollTimer: NodeJS.Timeout | undefined
  #retryMs = firstRetryMs

  constructor(
    ports: FetcherPorts,
    options: Pick<CheckedWorkOptions, 'queues' | 'operations' | 'pollMs'>,
    logger: Logger,
  ) {
    this.#ports = ports
    this.#options = options
    this.#operationNames = options.operations.map(({ name }) => name)
    this.#logger = logger
  }

  /** There may be something new in these queues: they are looked at from their beginning, in the next turn or now. */
  look(queues: readonly string[], when: 'soon' | 'now' = 'soon'): void {
    for (const queue of queues) {
      this.#promising.add(queue)
      this.#places.delete(queue)
    }
    if (when === 'now' && !this.#scheduled) this.#start()
    else this.#schedule()
  }

  /** The worker has room. */
  freed(): void {
    if (this.#promising.size > 0) this.#schedule()
  }

  /** Resolves when no claim is under way any more. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#pollTimer)
    await this.#fetching
  }

  // Once per turn of the event loop: a batch of settlements frees its places one after another, and should be followed
  // by one claim for all of them.
  #schedule(): void {
    if (this.#scheduled || this.#stopping) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#start()
    })
  }

  #start(): void {
    if (this.#stopping) return
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
      // What was announced while a claim was under way.
      if (this.#room() > 0) this.freed()
      // It had no room: that may pass without anybody saying so.
      if (this.#pollTimer === undefined && !this.#stopping) this.#pollIn(this.#jittered())
    })
  }

  async #fetch(): Promise<void> {
    for (const queue of this.#promising) {
      if (this.#room() === 0 || this.#stopping) return
      this.#promising.delete(queue) // before the claim, so that a wake-up during it is not forgotten
      try {
        await this.#claim(queue)
        this.#retryMs = firstRetryMs
      } catch (error) {
        this.#logger.warn({ err: error, queue }, 'claim_failed')
        this.#promising.add(queue)
        await new Promise((resolve) => setTimeout(resolve, this.#retryMs * (0.5 + Math.random())))
        this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2)
      }
    }
    await this.#schedulePoll()
  }

  // First what is quickly claimed, so that it starts; what else there is, unless that was a whole batch, afterwards.
  async #claim(queue: string): Promise<void> {
    const found = await this.#claimPlain(queue)
    if (found === 'all that was asked') {
      this.#promising.add(queue)
      return
    }
    const limit = this.#room()
    const others = limit === 0 ? limit : await this.#claimAny(queue, limit, found === 'none' ? 'sweep' : 'give up')
    if (others === limit) this.#promising.add(queue)
  }

  async #claimAny(queue: string, limit: number, ifNone: 'sweep' | 'give up'): Promise<number> {
    const wanted = { queue, operations: this.#operationNames, limit }
    return this.#accepting(limit, () => this.#ports.claims.ofQueue(wanted, ifNone))
  }

  /** Claims for as long as the queue gives all that is asked and no other is waiting, two claims at a time. */
  async #claimPlain(queue: string): Promise<Found> {
    let found: Found = 'none'
    let next: Promise<Found> | undefined = this.#claimOnce(queue)
    while (next !== undefined) {
      const current: Promise<Found> = next
      next = this.#hasMore(queue) ? this.#claimOnce(queue) : undefined
      next?.catch(() => {}) // it may fail before it is waited for
      try {
        found = await current
      } catch (error) {
        await next?.catch(() => {}) // what it brought has been accepted; the queue is looked at again in any case
        throw error
      }
    }
    return found
  }

  #hasMore(queue: string): boolean {
    return this.#places.has(queue) && this.#promising.size === 0 && !this.#stopping && this.#room() > 0
  }

  /** Claims from the queue's place, or from its beginning where it has none. */
  async #claimOnce(queue: string): Promise<Found> {
    const startedAt = performance.now()
    const known = this.#places.get(queue)
    const from = known !== undefined && startedAt < known.until ? known : undefined
    const limit = this.#room()
    let last: Place | undefined
    const count = await this.#accepting(limit, async () => {
      const batch = await this.#ports.claims.plain({ queue, operations: this.#operationNames, limit }, from?.place)
      last = batch.last
      return batch.attempts
    })
    if (last === undefined) {
      this.#places.delete(queue)
      return count === 0 ? 'none' : 'some'
    }
    // Announced meanwhile: then it is looked at from its beginning.
    if (!this.#promising.has(queue))
      this.#places.set(queue, { place: last, until: from?.until ?? startedAt + continueMs })
    return 'all that was asked'
  }

  // With as many as were asked for, another claim follows: it is sent first, for Postgres to work on while the handlers
  // of these begin.
  async #accepting(limit: number, claim: () => Promise<Attempt[]>): Promise<number> {
    const startedAt = performance.now()
    this.#claiming += limit
    let attempts: Attempt[] = []
    try {
      attempts = await claim()
    } finally {
      this.#claiming -= limit
    }
    this.#ports.accept(attempts, startedAt, attempts.length === limit ? 'soon' : 'now')
    return attempts.length
  }

  #room(): number {
    return this.#ports.room(this.#claiming)
  }

  async #schedulePoll(): Promise<void> {
    const dueMs = await this.#ports.msUntilDue().catch(() => undefined)
    if (this.#stopping) return
    const jittered = this.#jittered()
    this.#pollIn(dueMs === undefined ? jittered : Math.min(jittered, Math.max(minDueMs, dueMs + 1)))
  }

  #jittered(): number {
    return this.#options.pollMs * (0.75 + Math.random() / 2)
  }

  #pollIn(delayMs: number): void {
    clearTimeout(this.#pollTimer)
    this.#pollTimer = setTimeout(() => {
      this.#pollTimer = undefined
      this.look(this.#options.queues)
    }, delayMs)
  }
}
