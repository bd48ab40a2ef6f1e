import type { Attempt } from '../attempt/attempt.ts'
import type { Claims } from '../attempt/claims.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Engine } from '../engine.ts'
import type { Place } from '../lifecycle/claim-plain.ts'
import type { Logger } from '../logger.ts'
import type { Operation } from '../operation.ts'
import { judged, shutdownOutcome } from './judged.ts'
import type { CheckedWorkOptions } from './options.ts'
import { Pace } from './pace.ts'
import { PushedClaims } from './pushed.ts'
import { Renewer } from './renewer.ts'
import { Settler } from './settler.ts'
import type { WakeUp } from './wake-up.ts'

/*
 * One process, many jobs: one fetcher claims batches, handlers run up to `concurrency`, outcomes are written in batches.
 *
 * A job passes through: ready (claimed ahead of need) → running → reported → settled. Its place is free again only when
 * the settlement has committed, so a crash never leaves more behind than `concurrency` jobs and what is held ready.
 * Everything held is renewed, whatever it is doing.
 */

/** What a worker needs of its engine. */
export interface WorkerPorts {
  claims: Pick<Claims, 'plain' | 'ofQueue'>
  claimJobs: Engine['claimJobs']
  renew: Engine['renew']
  settleAll: Engine['settleAll']
  sweep: () => Promise<unknown>
  /** Tells other workers of those of these jobs that are due and of none of these operations. */
  passOn: (jobIds: readonly string[], operations: readonly string[]) => Promise<void>
  /** How long until the next job is due, as far as anybody knows. */
  msUntilDue: () => Promise<number | undefined>
  /** Runs a handler, here or in a process of its own, and says what it came to. Never throws. */
  execute: (attempt: Attempt) => Promise<Outcome>
  /** Ends a handler that did not stop when told, where that can be done; resolves when it is gone. */
  endHandler: (attempt: Attempt) => Promise<void>
}

const firstRetryMs = 100
const maxRetryMs = 5_000
const minDueMs = 20
/** How long to go on from place to place before a queue is looked at from its beginning again. */
const continueMs = 500

/** A place in a queue's order: everything before it was claimed, unless it came in later. */
interface Continuation {
  place: Place
  until: number
}

/** Claims and runs jobs until it is stopped. */
export class Worker {
  readonly #ports: WorkerPorts
  readonly #options: CheckedWorkOptions
  readonly #logger: Logger
  readonly #renewer: Renewer
  readonly #settler: Settler
  readonly #wakeUp: WakeUp | undefined
  readonly #pace: Pace
  readonly #pushed: PushedClaims
  readonly #ready: Attempt[] = []
  readonly #running = new Map<Attempt, Promise<void>>()
  /** Queues that may have due jobs, with the place to go on from in those of which a claim took all it could. */
  readonly #promising = new Map<string, Continuation | undefined>()
  #fetching: Promise<void> | undefined
  #fetchScheduled = false
  #stopping = false
  #pollTimer: NodeJS.Timeout | undefined
  #sweepTimer: NodeJS.Timeout | undefined
  #retryMs = firstRetryMs

  constructor(ports: WorkerPorts, options: CheckedWorkOptions, wakeUp: WakeUp | undefined, logger: Logger) {
    this.#ports = ports
    this.#options = options
    this.#logger = logger
    this.#wakeUp = wakeUp
    this.#pace = new Pace(options.maxBatch)
    this.#renewer = new Renewer((attempts) => ports.renew(attempts), logger)
    this.#settler = new Settler((settlements) => ports.settleAll(settlements), options.maxBatch, logger)
    this.#pushed = new PushedClaims(
      {
        claimJobs: (jobIds) => ports.claimJobs(jobIds, { operations: this.#operationNames }),
        hasRoom: () => !this.#renewer.endangered && this.inFlight < options.concurrency,
        accept: (attempt, claimedAt) => this.#accept(attempt, claimedAt),
        look: (queue) => this.#look([queue]),
        passOn: (jobIds) => ports.passOn(jobIds, this.#operationNames),
      },
      logger,
    )
  }

  /** How many jobs are held: ready, running, being settled, or, having been pushed, about to be claimed. */
  get inFlight(): number {
    return this.#ready.length + this.#running.size + this.#pushed.claiming
  }

  async start(): Promise<void> {
    await this.#wakeUp?.start(this.#options.queues, this.#options.concurrency, {
      onWake: (queue) => this.#look([queue]),
      onJob: (jobId, queue) => this.#pushed.claim(jobId, queue),
      onCancel: ({ attemptId }) => this.#renewer.find(attemptId)?.abort('cancelled'),
    })
    this.#sweepTimer = setInterval(() => void this.#sweep(), this.#options.sweepMs)
    this.#look(this.#options.queues)
  }

  /** Stops claiming, gives back what has not begun, tells handlers to stop, and after the grace gives back theirs too. */
  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#pollTimer)
    clearInterval(this.#sweepTimer)
    for (const attempt of this.#running.keys()) attempt.abort('shutdown')
    const grace = new Promise((resolve) => setTimeout(resolve, this.#options.graceMs))
    // A claim under way may still bring jobs; a Postgres that hangs must not hold up the rest.
    await Promise.race([grace, Promise.all([this.#wakeUp?.stop(), this.#fetching, this.#pushed.stop()])])
    const unstarted = this.#ready.splice(0).map((attempt) => this.#giveBack(attempt, 'shutdown'))
    await Promise.race([grace, Promise.all([...unstarted, ...this.#running.values()])])
    this.#settler.giveUp()
    await Promise.all([...this.#running.keys()].map((attempt) => this.#takeFrom(attempt)))
    this.#renewer.stop()
  }

  #look(queues: readonly string[]): void {
    for (const queue of queues) this.#promising.set(queue, undefined)
    this.#scheduleFetch()
  }

  // Once per turn of the event loop: a batch of settlements frees its places one after another, and should be followed
  // by one claim for all of them.
  #scheduleFetch(): void {
    if (this.#fetchScheduled || this.#stopping) return
    this.#fetchScheduled = true
    setImmediate(() => {
      this.#fetchScheduled = false
      if (!this.#stopping) this.#fetching ??= this.#fetch().finally(() => this.#fetched())
    })
  }

  #fetched(): void {
    this.#fetching = undefined
    // What was announced while it looked, and found a fetch under way.
    if (this.#promising.size > 0 && this.#room() > 0) this.#scheduleFetch()
  }

  async #fetch(): Promise<void> {
    for (const [queue, continuation] of this.#promising) {
      if (this.#room() === 0 || this.#stopping) return
      this.#promising.delete(queue) // before the claim, so that a wake-up during it is not forgotten
      try {
        await this.#claim(queue, continuation)
        this.#retryMs = firstRetryMs
      } catch (error) {
        this.#logger.warn({ err: error, queue }, 'claim_failed')
        this.#promising.set(queue, undefined)
        await new Promise((resolve) => setTimeout(resolve, this.#retryMs * (0.5 + Math.random())))
        this.#retryMs = Math.min(maxRetryMs, this.#retryMs * 2)
      }
    }
    await this.#schedulePoll()
  }

  // First what is quickly claimed, so that it starts; what else there is, unless that was a whole batch, afterwards.
  async #claim(queue: string, continuation: Continuation | undefined): Promise<void> {
    const { claims } = this.#ports
    const operations = this.#operationNames
    const startedAt = performance.now()
    const from = continuation !== undefined && startedAt < continuation.until ? continuation : undefined
    const { attempts, last } = await claims.plain({ queue, operations, limit: this.#room() }, from?.place)
    for (const attempt of attempts) this.#accept(attempt, startedAt)
    if (last !== undefined) {
      if (this.#promising.has(queue)) return // announced meanwhile, so from its beginning
      this.#promising.set(queue, { place: last, until: from?.until ?? startedAt + continueMs })
      return
    }
    const limit = this.#room()
    const others = limit === 0 ? undefined : await this.#claimAny({ queue, operations, limit }, attempts.length > 0)
    if (others === undefined || others === limit) this.#promising.set(queue, undefined)
  }

  async #claimAny(wanted: { queue: string; operations: string[]; limit: number }, hadSome: boolean): Promise<number> {
    const startedAt = performance.now()
    const attempts = await this.#ports.claims.ofQueue(wanted, hadSome ? 'give up' : 'sweep')
    for (const attempt of attempts) this.#accept(attempt, startedAt)
    return attempts.length
  }

  get #operationNames(): string[] {
    return this.#options.operations.map(({ name }) => name)
  }

  /** How many jobs to claim now: none until it is worth a statement. */
  #room(): number {
    if (this.#renewer.endangered) return 0
    const ahead = this.#pace.ahead
    const room = Math.min(this.#options.maxBatch, this.#options.concurrency + ahead - this.inFlight)
    return this.#ready.length > ahead / 2 ? 0 : Math.max(0, room)
  }

  #accept(attempt: Attempt, claimedAt: number): void {
    this.#renewer.hold(attempt, claimedAt)
    this.#ready.push(attempt)
    this.#startReady()
  }

  #startReady(): void {
    while (!this.#stopping && this.#running.size < this.#options.concurrency) {
      const attempt = this.#ready.shift()
      if (attempt === undefined) return
      this.#running.set(attempt, this.#run(attempt))
    }
  }

  async #run(attempt: Attempt): Promise<void> {
    const { jobId, attemptId, operation, attempts } = attempt.claimed
    const names = { job_id: jobId, attempt_id: attemptId, operation }
    this.#logger.debug?.({ ...names, attempt: attempts }, 'job_started')
    const outcome = judged(attempt, await this.#ports.execute(attempt), this.#operationOf(attempt))
    if (!this.#running.has(attempt)) return // taken from it at shutdown
    const reported = await this.#settler.report(attempt, outcome)
    const log = outcome.kind === 'failed' ? 'warn' : 'debug'
    this.#logger[log]?.({ ...names, ...summaryOf(outcome), ...reported }, 'job_settled')
    this.#end(attempt)
    // It may be due again at once, or before the next look.
    if (outcome.kind === 'failed' || outcome.kind === 'retry_later') this.#look([attempt.claimed.queue])
  }

  #end(attempt: Attempt): void {
    this.#renewer.drop(attempt)
    this.#running.delete(attempt)
    this.#pace.ended()
    this.#startReady()
    this.#pushed.freed()
    // The next job of the slot could not be claimed until now.
    if (attempt.claimed.slotKey !== undefined) this.#promising.set(attempt.claimed.queue, undefined)
    if (this.#promising.size > 0) this.#scheduleFetch()
  }

  async #giveBack(attempt: Attempt, reason: string): Promise<void> {
    await this.#settler.report(attempt, { kind: 'released', reason })
    this.#renewer.drop(attempt)
  }

  async #takeFrom(attempt: Attempt): Promise<void> {
    this.#running.delete(attempt)
    const { jobId, attemptId, operation } = attempt.claimed
    this.#logger.warn({ job_id: jobId, attempt_id: attemptId, operation }, 'handler_outlived_grace')
    await this.#ports.endHandler(attempt) // before the job is anybody else's
    await this.#settler.report(attempt, shutdownOutcome(this.#operationOf(attempt)))
    this.#renewer.drop(attempt)
  }

  #operationOf({ claimed }: Attempt): Operation | undefined {
    return this.#options.operations.find(({ name }) => name === claimed.operation)
  }

  async #schedulePoll(): Promise<void> {
    const { pollMs, queues } = this.#options
    const dueMs = await this.#ports.msUntilDue().catch(() => undefined)
    if (this.#stopping) return
    const jittered = pollMs * (0.75 + Math.random() / 2)
    const delayMs = dueMs === undefined ? jittered : Math.min(jittered, Math.max(minDueMs, dueMs + 1))
    clearTimeout(this.#pollTimer)
    this.#pollTimer = setTimeout(() => this.#look(queues), delayMs)
  }

  async #sweep(): Promise<void> {
    try {
      await this.#ports.sweep()
    } catch (error) {
      this.#logger.warn({ err: error }, 'sweep_failed')
    }
  }
}

/** What of an outcome belongs in a log line. */
function summaryOf(outcome: Outcome): Record<string, unknown> {
  const { kind } = outcome
  return kind === 'failed' ? { outcome: kind, error: outcome.error, error_code: outcome.errorCode } : { outcome: kind }
}
