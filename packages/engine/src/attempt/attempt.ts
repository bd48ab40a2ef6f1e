import type { Context } from '../context.ts'
import type { CallerClient, Db } from '../database/database.ts'
import { FencepostError, RetryLater } from '../errors.ts'
import type { Json } from '../json.ts'
import type { Link } from '../lifecycle/chain.ts'
import type { Claimed } from '../lifecycle/claim.ts'
import { letGo } from '../lifecycle/release.ts'
import type { SubmitOptions } from '../lifecycle/submission.ts'
import type { Operation } from '../operation.ts'
import {
  listEndedChildren,
  skippedChildrenOf,
  type ChildrenOptions,
  type EndedChild,
  type SkippedChildren,
} from './children.ts'
import { announce, completeWith, type Completed, type Completing } from './complete.ts'
import { checkEmission, checkProgress, emit, setProgress, type EmitOptions, type Progress } from './emit.ts'
import { alreadySettled, reject, type Verb } from './fence.ts'
import { OpenTransactions } from './open-transactions.ts'
import type { Outcome } from './settle.ts'
import { checkStep, listStepsOf, recordSteps, type Step, type StepResult } from './step.ts'
import { stepsTogether } from './steps-together.ts'
import { holdFence, untilLetGo, type TransactionClient } from './transaction.ts'

/** What became of a write made while a handler runs. */
export type Written = { written: true } | { written: false; why: 'fence_lost' }

/** Whether the attempt was the current one; if so it stays that until the caller's transaction ends. */
export type FenceHeld = { held: true } | { held: false; why: 'fence_lost' }

/** Why an attempt's signal fired. */
export type AbortReason =
  'fence_lost' | 'cancelled' | 'shutdown' | 'database_unreachable' | 'unhandled_rejection' | 'timed_out'

const noLinks: readonly Link[] = []

/**
 * One try at a job, and everything its handler may do in its name. Every write carries the fence: once the attempt is
 * no longer the current one, nothing it does is stored, and its signal fires.
 */
export class Attempt {
  readonly claimed: Claimed
  readonly #context: Context
  #controller: AbortController | undefined // made when somebody asks: most attempts are never told to stop
  #abortReason: AbortReason | undefined
  #completed: Completed | undefined
  #rejected: Outcome | undefined
  #links: Link[] | undefined // as few objects as possible in an ordinary attempt
  #reports = 0
  #transactions: OpenTransactions | undefined
  #handlerEnded = false
  #mayBeHeld = false
  /** A completion of the handler's that was sent off, and may or may not have been committed. */
  #sent: Completing<unknown> | undefined

  constructor(context: Context, claimed: Claimed) {
    this.#context = context
    this.claimed = claimed
  }

  get jobId(): string {
    return this.claimed.jobId
  }

  get attemptId(): string {
    return this.claimed.attemptId
  }

  /** Fires when the attempt should stop; abortReason says why. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  /** Why the attempt should stop; undefined while it should not. */
  get abortReason(): AbortReason | undefined {
    return this.#abortReason
  }

  /** The jobs chained so far. */
  get links(): readonly Link[] {
    return this.#links ?? noLinks
  }

  /** What complete() has already written; undefined while the attempt has not completed by itself. */
  get completed(): Completed | undefined {
    return this.#completed
  }

  /** What a rejection that nobody handled has made of the attempt: written when its handler has ended. */
  get rejected(): Outcome | undefined {
    return this.#rejected
  }

  /** Notes a rejection that nobody handled, and tells the handler to stop. The first one stays. */
  rejectedBy(outcome: Outcome): void {
    this.#rejected ??= outcome
    this.abort('unhandled_rejection')
  }

  /** Even while no report of its outcome is under way, odd while one is; another number after every report. */
  get reports(): number {
    return this.#reports
  }

  /** Notes that a report begins, or that it has ended. */
  reporting(): void {
    this.#reports += 1
  }

  /** Tells the handler to stop. The first reason stays. */
  abort(reason: AbortReason): void {
    if (this.#abortReason !== undefined) return
    this.#abortReason = reason
    this.#controller?.abort(reason)
  }

  /** Writes a line in the job's history, visible at once. */
  async emit(event: string, options: EmitOptions = {}): Promise<Written> {
    const emission = checkEmission(event, options, this.#context.limits.maxPayloadBytes)
    return this.#written('emit', await emit(this.#db, this, emission))
  }

  /** Sets how far the job has come, without an event. */
  async progress(current: number, total?: number): Promise<Written> {
    const progress: Progress = checkProgress(total === undefined ? { current } : { current, total })
    return this.#written('progress', await setProgress(this.#db, this, progress))
  }

  /** Stores what came of a named part of the job. */
  async recordStep(result: StepResult): Promise<Written> {
    const step = checkStep(result, this.#context.limits.maxPayloadBytes)
    const together = stepsTogether(this.#context.database)
    const alone = this.#isInTransaction
    const held = alone ? recordSteps(this.#db, this, [step]) : together.record(this.claimed, step)
    return this.#written('step', await held)
  }

  /** The step results stored so far, by this attempt and earlier ones. */
  async steps(): Promise<Step[]> {
    if (!this.#isInTransaction) return stepsTogether(this.#context.database).list(this.jobId)
    return (await listStepsOf(this.#db, [this.jobId])).get(this.jobId) ?? []
  }

  /** The children of the job that have ended, with what came of them, oldest first; `after` is the last id before. */
  async children(options: ChildrenOptions = {}): Promise<EndedChild[]> {
    return listEndedChildren(this.#db, this.jobId, options)
  }

  /** The children that defer() left out because their locks were held: how many, and the first hundred of the locks. */
  async skippedChildren(): Promise<SkippedChildren> {
    return skippedChildrenOf(this.#db, this.jobId)
  }

  /**
   * Runs a named part of the job unless an attempt has already finished it; then its stored result is returned.
   * The result is stored after the part has run: a crash in between runs it again.
   */
  async step<T extends Json>(name: string, work: () => Promise<T>): Promise<T> {
    const done = (await this.steps()).find(({ step, success }) => step === name && success)
    if (done !== undefined) return done.result as T
    const started = performance.now()
    const elapsedSeconds = () => (performance.now() - started) / 1000
    let result: T
    try {
      result = await work()
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      // Asked to come back later, or stopped: the step has not failed.
      if (!(error instanceof RetryLater) && this.#abortReason === undefined) {
        await this.recordStep({ step: name, success: false, error: message, elapsedSeconds: elapsedSeconds() })
      }
      throw error
    }
    const written = await this.recordStep({ step: name, success: true, result, elapsedSeconds: elapsedSeconds() })
    if (!written.written) throw this.#fenceLost(`the result of step ${name}`)
    return result
  }

  /**
   * A transaction of the handler's own, in the engine's database, that commits only if this attempt is still the
   * current one. Throws `fence_lost`, having written nothing, if it is not.
   */
  async transaction<T>(work: (client: TransactionClient) => Promise<T>): Promise<T> {
    const { database } = this.#context
    const outcome = await this.#opened.run((one) =>
      database.clientTransaction('transaction', async (db, client) => {
        if (!(await holdFence(db, this))) return { held: false as const }
        return { held: true as const, value: await one.work(client, work) }
      }),
    )
    if (outcome.held) return outcome.value
    await this.#written('transaction', false)
    throw this.#fenceLost('the transaction')
  }

  /**
   * Locks the attempt's row under its fence in a transaction of the caller's own, on any connection to the engine's
   * database: what that transaction commits, it commits as the current attempt. When the fence is lost, nothing is
   * locked, and the caller is to roll back. Until his transaction ends nobody can settle, cancel or expire the job, so
   * call it last, right before the commit.
   */
  async holdFence(client: CallerClient): Promise<FenceHeld> {
    if (await holdFence(this.#context.database.join(client), this)) return { held: true }
    await this.#written('transaction', false)
    return { held: false, why: 'fence_lost' }
  }

  /**
   * Looks whether this attempt is still the current one, for effects outside of Postgres. Limit: it may lose its fence
   * right afterwards, so what follows must be short.
   */
  async checkFence(): Promise<FenceHeld> {
    if (await holdFence(this.#db, this)) return { held: true }
    await this.#written('transaction', false)
    return { held: false, why: 'fence_lost' }
  }

  /**
   * The handler's last transaction: what `work` writes, the end of the job with what `work` returns as its result, and
   * the chained jobs are one commit. The handler is to return after it; what it then returns or throws changes nothing.
   * Throws `fence_lost`, having written nothing, if the attempt is no longer the current one.
   *
   * When the answer to the commit is lost, it throws, and nobody knows whether it was applied. Called once more, it answers
   * what the first call would have, without doing the work again, if it was.
   */
  async complete<T>(work: (client: TransactionClient) => Promise<T>): Promise<T> {
    const chained = this.links.length
    const earlier = this.#sent as Completing<T> | undefined
    this.reporting() // a renewal that finds the job gone has not lost the fence
    try {
      const sending = (sent: Completing<T>) => {
        this.#sent = sent
      }
      // While an earlier one is being committed, this waits for it.
      const done = await this.#opened.run((one) =>
        completeWith(this.#context, this, (client) => one.work(client, work), sending),
      )
      const applied = done ?? (earlier !== undefined && (await this.#hasCompleted()) ? earlier : undefined)
      if (applied !== undefined) {
        await announce(this.#context, this, applied)
        this.#completed = { ...applied.outcome, written: true }
        return applied.value
      }
    } catch (error) {
      this.#links?.splice(chained) // what was chained inside is taken back with everything else
      throw error
    } finally {
      this.reporting()
    }
    await this.#written('complete', false)
    throw this.#fenceLost('the transaction')
  }

  /** True while a transaction of the handler holds the job's row: nothing can be settled before it has ended. */
  get hasOpenTransactions(): boolean {
    return this.#transactions !== undefined && this.#transactions.size > 0
  }

  /**
   * True when the process of its handler was ended: Postgres may still be at a statement of that, in a transaction that
   * holds the job's row. Whoever settles the attempt waits for it.
   */
  get mayBeHeld(): boolean {
    return this.#mayBeHeld
  }

  /** Notes that the process of its handler was ended. */
  handlerKilled(): void {
    this.#mayBeHeld = true
  }

  /** The handler has ended: no transaction of its own may begin from now on. */
  closeTransactions(): void {
    this.#handlerEnded = true
    this.#transactions?.close()
  }

  /** Waits for the handler's transactions, and rolls back what is open after `graceMs`; false when it had to. */
  async endTransactions(graceMs: number): Promise<boolean> {
    if (this.#transactions === undefined || (await this.#transactions.end(graceMs))) return true
    await untilLetGo(this.#context.database, this)
    return false
  }

  /** Asks for a job that will exist only if this attempt completes, in the same pipeline. */
  chain<Input>(operation: Operation<Input>, payload: Input, options: SubmitOptions = {}): void {
    this.#links ??= []
    this.#links.push({ operation, payload, options })
  }

  /** Gives up the lock and slot that this attempt may still hold after its job was taken from it. */
  async letGo(): Promise<void> {
    await letGo(this.#context.database, this.claimed)
  }

  get #opened(): OpenTransactions {
    this.#transactions ??= new OpenTransactions(this.claimed)
    if (this.#handlerEnded) this.#transactions.close()
    return this.#transactions
  }

  // While a transaction of the handler has a connection of the pool, nothing may wait for a second one. It then holds the
  // fence as well, so that what goes beside the pool never waits for whoever would end the attempt.
  get #isInTransaction(): boolean {
    return this.#transactions?.atWork === true
  }

  get #db(): Db {
    const { database } = this.#context
    return this.#isInTransaction ? database.beside : database
  }

  async #hasCompleted(): Promise<boolean> {
    return (await alreadySettled(this.#context.database, 'complete', [this])).has(this.attemptId)
  }

  async #written(verb: Verb, landed: boolean): Promise<Written> {
    if (landed) return { written: true }
    this.abort('fence_lost')
    await reject({ ...this.#context, database: this.#db }, verb, [this.claimed])
    return { written: false, why: 'fence_lost' }
  }

  #fenceLost(what: string): FencepostError {
    return new FencepostError(
      'fence_lost',
      `Attempt ${this.attemptId} of job ${this.jobId} is no longer the current one; ${what} was not stored. ` +
        'Stop working on it: another attempt may be running.',
      { details: { jobId: this.jobId, attemptId: this.attemptId } },
    )
  }
}
