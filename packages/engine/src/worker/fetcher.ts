import type { Attempt } from '../attempt/attempt.ts'
import type { Claims, EngineClaimOptions, PlainBatch } from '../attempt/claims.ts'
import type { Place } from '../lifecycle/claim-plain.ts'
import type { Logger } from '../logger.ts'
import type { CheckedWorkOptions } from './options.ts'
import type { Survey } from './survey.ts'

/*
 * The part of a worker that claims. It looks where there may be something: in queues that were announced, and in one that
 * has just given all that was asked of it. For the rest, one statement surveys all queues: at least once in `pollMs`,
 * whatever else happens; when the next known job becomes due; and after every claim that left places free, because
 * there may be jobs that the quick claim does not take. A queue that has due jobs by the survey gets the other claim,
 * which finds all kinds of jobs.
 *
 * At a queue that gives all that is asked it goes on from where the last claim ended. What comes in before that place is found when the queue is
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
  /** Which queues have due jobs, and when the next is due. */
  survey: () => Promise<Survey>
  /** It was time to look at all queues, and the worker has no room for what might be there. */
  full: () => void
}

/** A place in a queue's order: everything before it was claimed, unless it came in later. */
interface Continuation {
  place: Place
  until: number
}

type Found = 'none' | 'some' | 'all that was asked'

/** How to claim from a queue next: what is quickly claimed, or any job. */
type Kind = 'plain' | 'any'

const firstRetryMs = 100
const maxRetryMs = 5_000
/** How often to survey at most for jobs that become due, one after another. */
const minDueMs = 20
/** How long to go on from place to place before a queue is looked at from its beginning again. */
const continueMs = 500

/** Claims jobs for a worker until it is stopped. */
export class Fetcher {
  readonly #ports: FetcherPorts
  readonly #options: Pick<CheckedWorkOptions, 'operations' | 'pollMs'>
  readonly #operationNames: readonly string[]
  readonly #logger: Logger
  /** Queues that may have due jobs, in the order in which they get their turn. */
  readonly #promising = new Map<string, Kind>()
  /** Where to go on in those that gave all that was asked. */
  readonly #places = new Map<string, Continuation>()
  #claiming = 0
  #fetching: Promise<void> | undefined
  #scheduled = false
  #stopping = false
  #surveyWanted = false
  #surveyedAt = -Infinity
  #pollTimer: NodeJS.Timeout | undefined
  #dueTimer: NodeJS.Timeout | undefined
  #dueAt = Infinity
  #retryMs = firstRetryMs

  constructor(ports: FetcherPorts, options: Pick<CheckedWorkOptions, 'operations' | 'pollMs'>, logger: Logger) {
    this.#ports = ports
    this.#options = options
    this.#operationNames = options.operations.map(({ name }) => name)
    this.#logger = logger
  }

  /** How many jobs the claims that are under way may bring. */
  get claiming(): number {
    return this.#claiming
  }

  /** Looks at all queues, and from now on regularly. */
  start(): void {
    this.#poll()
  }

  /** There may be something new in these queues: they are looked at from their beginning, in the next turn or now. */
  look(queues: readonly string[], when: 'soon' | 'now' = 'soon'): void {
    for (const queue of queues) {
      if (!this.#promising.has(queue)) this.#promising.set(queue, 'plain')
      this.#places.delete(queue)
    }
    if (when === 'now' && !this.#scheduled) this.#start()
    else this.#schedule()
  }

  /** The next job of a slot in this queue could not be claimed until now. */
  slotFreed(queue: string): void {
    this.#promising.set(queue, 'any')
    this.#schedule()
  }

  /** A job was put back, to be due some time. */
  putBack(): void {
    this.#surveyIn(minDueMs - (performance.now() - this.#surveyedAt))
  }

  /** The worker has room. */
  freed(): void {
    if (this.#promising.size > 0 || this.#surveyWanted) this.#schedule()
  }

  /** Resolves when no claim is under way any more. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#pollTimer)
    clearTimeout(this.#dueTimer)
    await this.#fetching
  }

  // Its timer is set by itself alone: no claim can put it off. It comes a little early each time, so that workers spread.
  #poll(): void {
    this.#pollTimer = setTimeout(() => this.#poll(), this.#options.pollMs * (0.8 + Math.random() / 5))
    if (this.#room() <= 0) this.#ports.full()
    this.#survey()
  }

  #survey(): void {
    this.#surveyWanted = true
    this.#schedule()
  }

  #surveyIn(delayMs: number): void {
    const dueAt = performance.now() + delayMs
    if (dueAt >= this.#dueAt || this.#stopping) return
    clearTimeout(this.#dueTimer)
    this.#dueAt = dueAt
    this.#dueTimer = setTimeout(
      () => {
        this.#dueAt = Infinity
        this.#survey()
      },
      Math.max(0, delayMs),
    )
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
    })
  }

  async #fetch(): Promise<void> {
    let surveyFailed = false
    while (this.#room() > 0 && !this.#stopping) {
      const [next] = this.#promising
      if (next === undefined && !this.#surveyWanted) return
      // A survey first: a queue that always has more must not keep the others from being looked at. After one that failed,
      // a queue that is known gets its turn: it may be claimed from all the same.
      const turn: [string, Kind] | undefined = this.#surveyWanted && !surveyFailed ? undefined : next
      try {
        if (turn === undefined) await this.#lookAtAll()
        else await this.#claim(...turn)
        surveyFailed = false
        this.#retryMs = firstRetryMs
      } catch (error) {
        surveyFailed = turn === undefined
        this.#logger.warn({ err: error, queue: next?.[0] }, 'claim_failed')
        await new Promise((resolve) => setTimeout(resolve, this.#retryMs * (0.5 + Math.random())))
        this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2)
      }
    }
  }

  async #lookAtAll(): Promise<void> {
    this.#surveyWanted = false
    this.#surveyedAt = performance.now()
    try {
      const { due, nextMs } = await this.#ports.survey()
      for (const queue of due) this.#promising.set(queue, 'any')
      // Later than that, it surveys by itself.
      if (nextMs !== undefined && nextMs < this.#options.pollMs) this.#surveyIn(Math.max(minDueMs, nextMs + 1))
    } catch (error) {
      this.#surveyWanted = true
      throw error
    }
  }

  async #claim(queue: string, kind: Kind): Promise<void> {
    this.#promising.delete(queue) // before the claim, so that a wake-up during it is not forgotten
    try {
      const wanted = this.#room()
      const found = kind === 'any' ? await this.#claimAny(queue, wanted) : await this.#claimPlain(queue)
      if (found === 'all that was asked') this.#turnOf(queue, 'plain')
      // Fewer do not mean that nothing is left: there may be jobs of other kinds, or others of slots that were doubled.
      else if (kind === 'plain' || found === 'some') this.#surveyWanted = true
    } catch (error) {
      this.#turnOf(queue, kind)
      throw error
    }
  }

  /** The queue gets another turn, after the others. */
  #turnOf(queue: string, kind: Kind): void {
    if (!this.#promising.has(queue)) this.#promising.set(queue, kind)
  }

  async #claimAny(queue: string, limit: number): Promise<Found> {
    const wanted = { queue, operations: this.#operationNames, limit }
    const count = await this.#accepting(limit, () => this.#ports.claims.ofQueue(wanted, 'give up'))
    this.#places.delete(queue)
    if (count === limit) return 'all that was asked'
    return count === 0 ? 'none' : 'some'
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
    const otherWaits = this.#promising.size > 0 || this.#surveyWanted
    return this.#places.has(queue) && !otherWaits && !this.#stopping && this.#room() > 0
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
}
