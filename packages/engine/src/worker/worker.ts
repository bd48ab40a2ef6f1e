import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Engine } from '../engine.ts'
import type { Swept } from '../lifecycle/sweep.ts'
import type { Logger } from '../logger.ts'
import type { Operation } from '../operation.ts'
import type { SubmittedDue } from '../schedules/submit-due.ts'
import { atMost } from './at-most.ts'
import { Fetcher, type QueueClaims } from './fetcher.ts'
import { judged, keepsItsJob, takenOutcome } from './judged.ts'
import { logOutlivedGrace, logSettled, logStarted } from './log.ts'
import type { CheckedWorkOptions } from './options.ts'
import { Pace } from './pace.ts'
import { PushedClaims } from './pushed.ts'
import { Ready } from './ready.ts'
import { Renewer } from './renewer.ts'
import { Settler } from './settler.ts'
import type { Survey } from './survey.ts'
import { Sweeper } from './sweeper.ts'
import { Timeouts } from './timeouts.ts'
import type { WakeUp } from './wake-up.ts'

/*
 * One process, many jobs: one fetcher claims batches, handlers run up to `concurrency`, outcomes are written in batches.
 *
 * A job passes through: ready (claimed ahead of need) → running → reported → settled. When its handler has ended, the next
 * of those that are ready begins, so that short handlers do not wait for the disk. For another claim there is room only when
 * the settlement has committed: a crash never leaves more behind than `concurrency` jobs and what is claimed ahead. What was
 * claimed ahead and does not begin within a second is given back, without spending an attempt.
 * Everything held is renewed, whatever it is doing.
 */

/** How long a job that was claimed ahead may wait for its handler before it is given back. */
const maxReadyMs = 1_000

/** What a worker needs of its engine. */
export interface WorkerPorts {
  claims: QueueClaims
  claimJobs: Engine['claimJobs']
  renew: (attempts: readonly Attempt[]) => Promise<unknown>
  settleAll: Engine['settleAll']
  /** Sweeps, unless any process has within this time. */
  sweep: (unlessWithinMs: number) => Promise<Swept | undefined>
  /** Tells other workers of those of these jobs that are due and of none of these operations. */
  passOn: (jobIds: readonly string[], operations: readonly string[]) => Promise<void>
  /** Which of its queues have due jobs, and when the next is due. */
  survey: () => Promise<Survey>
  /** Submits the jobs of schedules that are due. */
  submitDue: () => Promise<SubmittedDue>
  /** Runs a handler, here or in a process of its own, and says what it came to. Never throws. */
  execute: (attempt: Attempt) => Promise<Outcome>
  /** Ends a handler that did not stop when told, where that can be done; resolves when it is gone. */
  endHandler: (attempt: Attempt) => Promise<void>
}

/** Claims and runs jobs until it is stopped. */
export class Worker {
  readonly #ports: WorkerPorts
  readonly #options: CheckedWorkOptions
  readonly #logger: Logger
  readonly #renewer: Renewer
  readonly #settler: Settler
  readonly #timeouts: Timeouts
  /** Attempts whose time is over while their handlers go on, with the writing of that. They keep their places. */
  readonly #overran = new Map<Attempt, Promise<void>>()
  readonly #sweeper: Sweeper
  readonly #wakeUp: WakeUp | undefined
  readonly #pace: Pace
  readonly #pushed: PushedClaims
  readonly #ready = new Ready<Attempt>()
  #readyTimer: NodeJS.Timeout | undefined
  readonly #running = new Map<Attempt, Promise<void>>()
  readonly #fetcher: Fetcher
  /** How many of those running have ended, and are being settled. */
  #reported = 0
  readonly #operationNames: readonly string[]
  #submitting = false
  #stopping = false
  #stopped = false

  constructor(ports: WorkerPorts, options: CheckedWorkOptions, wakeUp: WakeUp | undefined, logger: Logger) {
    this.#ports = ports
    this.#options = options
    this.#logger = logger
    this.#wakeUp = wakeUp
    this.#operationNames = options.operations.map(({ name }) => name)
    this.#pace = new Pace(options.maxBatch)
    this.#renewer = new Renewer((attempts) => ports.renew(attempts), logger)
    this.#settler = new Settler((settlements) => ports.settleAll(settlements), options.maxBatch, logger)
    this.#timeouts = new Timeouts(options.graceMs, (attempt) => this.#late(attempt))
    this.#sweeper = new Sweeper((unlessWithinMs) => this.#sweep(unlessWithinMs), options.sweepMs, logger)
    this.#fetcher = new Fetcher(
      {
        claims: ports.claims,
        room: (claiming) => this.#room(claiming),
        accept: (attempts, claimedAt, start) => this.#accept(attempts, claimedAt, start),
        survey: () => this.#survey(),
        full: () => void this.#submitDue(), // schedules do not wait for a place
      },
      options,
      logger,
    )
    this.#pushed = new PushedClaims(
      {
        claimJobs: (jobIds) => ports.claimJobs(jobIds, { operations: this.#operationNames }),
        hasRoom: () => !this.#renewer.endangered && this.inFlight + this.#fetcher.claiming < options.concurrency,
        accept: (attempt, claimedAt) => this.#accept([attempt], claimedAt, 'now'),
        look: (queue) => this.#fetcher.look([queue]),
        passOn: (jobIds) => ports.passOn(jobIds, this.#operationNames),
        freed: () => this.#fetcher.freed(),
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
      onWake: (queue) => this.#fetcher.look([queue], 'now'),
      onJob: (jobId, queue) => this.#pushed.claim(jobId, queue),
      onCancel: ({ attemptId }) => this.#renewer.find(attemptId)?.abort('cancelled'),
    })
    this.#sweeper.start()
    this.#fetcher.start()
  }

  /**
   * Stops claiming, gives back what has not begun, tells handlers to stop, and after the grace gives back theirs too.
   * Jobs with a lock or slot whose handlers go on in this process stay theirs: it resolves when those have ended.
   */
  async stop(): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#readyTimer)
    this.#sweeper.stop()
    for (const attempt of this.#running.keys()) attempt.abort('shutdown')
    const graceEnds = performance.now() + this.#options.graceMs
    const inGrace = (done: Promise<unknown>) => atMost(Math.max(0, graceEnds - performance.now()), done)
    // A claim under way may still bring jobs; a Postgres that hangs must not hold up the rest.
    await inGrace(Promise.all([this.#wakeUp?.stop(), this.#fetcher.stop(), this.#pushed.stop()]))
    this.#stopped = true
    const unstarted = this.#ready.takeAll().map((attempt) => this.#giveBack(attempt, 'shutdown'))
    await inGrace(Promise.all([...unstarted, ...this.#running.values()]))
    this.#settler.giveUp()
    await Promise.all([...unstarted, ...[...this.#running].map(([attempt, ended]) => this.#takeFrom(attempt, ended))])
    this.#renewer.stop()
  }

  /** How many jobs to claim now: none until it is worth a statement. */
  #room(claiming: number): number {
    if (this.#renewer.endangered) return 0
    const ahead = this.#pace.ahead
    const room = this.#options.concurrency + ahead - this.inFlight - claiming
    return room < ahead / 2 ? 0 : Math.max(0, Math.min(this.#options.maxBatch, room))
  }

  #accept(attempts: readonly Attempt[], claimedAt: number, start: 'now' | 'soon'): void {
    if (this.#stopped) {
      for (const attempt of attempts) void this.#giveBack(attempt, 'shutdown')
      return
    }
    for (const attempt of attempts) {
      this.#renewer.hold(attempt, claimedAt)
      this.#timeouts.watch(attempt, claimedAt)
    }
    this.#ready.add(attempts, performance.now())
    if (start === 'now') this.#startReady()
    else setImmediate(() => this.#startReady())
    this.#watchReady()
    this.#pushed.freed() // what a claim had spoken for, and did not get
  }

  // Handlers were quick when these were claimed ahead, and those that run now are not: somebody else may be free.
  #watchReady(): void {
    if (this.#ready.length === 0 || this.#stopping || this.#readyTimer !== undefined) return
    const waitedMs = performance.now() - this.#ready.oldest
    this.#readyTimer = setTimeout(
      () => {
        this.#readyTimer = undefined
        for (const attempt of this.#ready.takeOlderThan(performance.now() - maxReadyMs))
          void this.#giveBack(attempt, 'not_started')
        this.#watchReady()
      },
      Math.max(0, maxReadyMs - waitedMs) + 1,
    )
  }

  #startReady(): void {
    while (!this.#stopping && this.#running.size - this.#reported < this.#options.concurrency) {
      const attempt = this.#ready.shift()
      if (attempt === undefined) return
      this.#running.set(attempt, this.#run(attempt))
    }
  }

  async #run(attempt: Attempt): Promise<void> {
    let outcome: Outcome
    if (attempt.abortReason === undefined) {
      logStarted(this.#logger, attempt)
      outcome = await this.#ports.execute(attempt)
      if (!this.#running.has(attempt)) return // taken from it at shutdown
      if (this.#overran.has(attempt)) return this.#letGo(attempt)
      if (attempt.abortReason !== undefined) outcome = judged(attempt, outcome, this.#operationOf(attempt))
      this.#reported += 1
      this.#startReady()
    } else {
      // Lost, or cancelled, while it was held ready.
      outcome = judged(attempt, { kind: 'released', reason: attempt.abortReason }, this.#operationOf(attempt))
      this.#reported += 1
    }
    const reported = await this.#settler.report(attempt, outcome)
    this.#reported -= 1
    logSettled(this.#logger, attempt, outcome, reported)
    this.#end(attempt)
    // It may be due again at once, or before the next look. A deferral whose children are refused is retried, too.
    if (outcome.kind === 'failed' || outcome.kind === 'retry_later' || outcome.kind === 'deferred')
      this.#fetcher.putBack()
  }

  /** Its time and its grace are over, and its handler runs. One in a process of its own is killed, and then settled. */
  #late(attempt: Attempt): void {
    if (!this.#running.has(attempt) || this.#settler.isWriting(attempt)) return
    if (this.#operationOf(attempt)?.isolation === 'process') return
    this.#overran.set(attempt, this.#failOverrun(attempt))
  }

  async #failOverrun(attempt: Attempt): Promise<void> {
    logOutlivedGrace(this.#logger, attempt)
    await this.#ports.endHandler(attempt) // its transactions hold the job's row
    if (attempt.completed !== undefined) return // written by the handler itself
    const outcome: Outcome = { kind: 'timed_out', handlerRuns: true }
    logSettled(this.#logger, attempt, outcome, await this.#settler.report(attempt, outcome))
  }

  /** The handler of an attempt that has timed out has ended at last, or is left behind: its lock and slot are free. */
  async #letGo(attempt: Attempt): Promise<void> {
    await this.#overran.get(attempt)
    await attempt.letGo().catch(() => {}) // nobody renews them any more
    this.#overran.delete(attempt)
    this.#end(attempt)
  }

  #end(attempt: Attempt): void {
    this.#drop(attempt)
    this.#running.delete(attempt)
    this.#pace.ended()
    this.#startReady()
    this.#pushed.freed()
    if (attempt.claimed.slotKey !== undefined) this.#fetcher.slotFreed(attempt.claimed.queue)
    else this.#fetcher.freed()
  }

  async #giveBack(attempt: Attempt, reason: string): Promise<void> {
    await this.#settler.report(attempt, { kind: 'released', reason })
    this.#drop(attempt)
    if (reason === 'not_started') this.#fetcher.putBack()
  }

  #drop(attempt: Attempt): void {
    this.#renewer.drop(attempt)
    this.#timeouts.drop(attempt)
  }

  async #takeFrom(attempt: Attempt, ended: Promise<void>): Promise<void> {
    if (this.#overran.has(attempt)) {
      await this.#overran.get(attempt)
      return keepsItsJob(attempt, this.#operationOf(attempt), this.#options.processEnds) ? ended : this.#letGo(attempt)
    }
    if (this.#settler.isWriting(attempt)) return ended // what it came to stands, whether that can still be written or not
    const operation = this.#operationOf(attempt)
    logOutlivedGrace(this.#logger, attempt)
    if (keepsItsJob(attempt, operation, this.#options.processEnds)) return ended
    this.#running.delete(attempt)
    await this.#ports.endHandler(attempt) // before the job is anybody else's
    await this.#settler.report(attempt, takenOutcome(attempt, operation))
    this.#drop(attempt)
  }

  #operationOf({ claimed }: Attempt): Operation | undefined {
    return this.#options.operations.find(({ name }) => name === claimed.operation)
  }

  async #sweep(unlessWithinMs: number): Promise<Swept | undefined> {
    const swept = await this.#ports.sweep(unlessWithinMs)
    if (
      swept !== undefined &&
      swept.expired.length + swept.failed.length + swept.timedOut.length + swept.closed.length > 0
    )
      this.#fetcher.putBack()
    return swept
  }

  // Then it surveys again, for the next due time. One that is at another process, or fails, is left to the next poll.
  async #submitDue(): Promise<void> {
    if (this.#submitting) return
    this.#submitting = true
    try {
      const { schedules } = await this.#ports.submitDue()
      if (schedules > 0) this.#fetcher.putBack()
    } catch (error) {
      this.#logger.warn({ err: error }, 'schedules_failed')
    } finally {
      this.#submitting = false
    }
  }

  async #survey(): Promise<Survey> {
    const found = await this.#ports.survey()
    if (found.expired) void this.#sweeper.now()
    if (found.scheduled) void this.#submitDue()
    return found
  }
}
