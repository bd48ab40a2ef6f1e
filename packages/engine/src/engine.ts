import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Attempt } from './attempt/attempt.ts'
import { Claims, type EngineClaimOptions } from './attempt/claims.ts'
import { renewAttempts } from './attempt/renewals.ts'
import { execute, outcomeOf, outcomeOfError } from './attempt/run.ts'
import { settle, settleAll, type Outcome } from './attempt/settle.ts'
import { told } from './attempt/told.ts'
import { BulkActs } from './bulk/bulk-acts.ts'
import { listStepsOf, type Step } from './attempt/step.ts'
import { checkInteger, checkKey, storableText } from './check.ts'
import type { Context } from './context.ts'
import type { CallerClient, Db, EngineDatabase } from './database/database.ts'
import { migrate, requireSchema, schemaVersion, type SchemaVersion } from './database/migrate.ts'
import type { MigrationSet } from './database/migration-set.ts'
import { FencepostError } from './errors.ts'
import { checkId } from './ids.ts'
import type { Json } from './json.ts'
import { cancelTrees, type Cancelled } from './lifecycle/cancel.ts'
import { deleteJob, type Deleted } from './lifecycle/delete.ts'
import { drainLevels, getDrain, pendingQueues, setDrain, type Drain, type DrainLevel } from './lifecycle/drain.ts'
import type { Settled } from './lifecycle/outcome.ts'
import { getQueue, listQueues, pauseQueue, resumeQueue, type Queue } from './lifecycle/queues.ts'
import { recover, type Recovered } from './lifecycle/recover.ts'
import { runAgainJobs, type RanAgain } from './lifecycle/run-again.ts'
import { removeOldJobs } from './lifecycle/retain.ts'
import { prepareSubmission, type Submission, type SubmitOptions } from './lifecycle/submission.ts'
import { claimableIds, insertSubmissions, isKeyed, type Submitted } from './lifecycle/submit.ts'
import { SubmitTogether } from './lifecycle/submit-together.ts'
import { sweep, type Swept, type SweepOptions } from './lifecycle/sweep.ts'
import { checkQueue, findOperation, operationDefaults, type Operation } from './operation.ts'
import { countDepth, type Depth } from './read/depth.ts'
import { countEnded, type Ended, type EndedRange } from './read/ended.ts'
import { EventFeed } from './read/event-feed.ts'
import { explainJob, type Explanation } from './read/explain.ts'
import {
  listEventPage,
  listEvents,
  type EventPage,
  type EventPageOptions,
  type EventsOptions,
  type JobEvent,
} from './read/events.ts'
import { getJob, getJobs, getListedJobs, type Job, type ListedJob } from './read/job.ts'
import { countJobs, type JobCount } from './read/count.ts'
import type { JobFilter } from './read/filter.ts'
import { listJobs, listPage, type JobPage, type ListOptions, type PageOptions } from './read/list.ts'
import { getPipeline, getPipelinePage, unfinishedOf, type Pipeline, type PipelinePage } from './read/pipeline.ts'
import { watchEvents } from './read/watch-events.ts'
import { waited, type Waited, type WaitOptions } from './read/waited.ts'
import { Waits } from './read/waits.ts'
import { Schedules } from './schedules/schedules.ts'
import type { WorkOptions } from './worker/options.ts'
import { workOnce, type WorkedOnce, type WorkOnceOptions } from './worker/once.ts'
import { listWorkers, type WorkerInfo } from './worker/registry.ts'
import { work } from './worker/work.ts'

/** Options of one submission, and whose transaction it belongs to. */
export interface EngineSubmitOptions extends SubmitOptions {
  /** The caller's `pg` client, with his transaction open: the job exists if that commits. Call wake() after it has. */
  client?: CallerClient
}

/** One of many submissions. */
export interface SubmitItem<Input> {
  payload: Input
  options?: SubmitOptions
}

export type ClaimAnswer =
  | { claimed: true; attempt: Attempt }
  /** Somebody else won, it is not due, it is finished, its slot is busy, …: explain() tells. */
  | { claimed: false }

export type Aborted = { aborted: true; jobIds: string[] } | { aborted: false; why: 'not_found' | 'nothing_to_abort' }

/** Jobs on one Postgres schema. Made by openEngine(). */
export class Engine {
  /** Names this process in what it claims. */
  readonly workerId: string
  /** Jobs that are submitted at set times. */
  readonly schedules: Schedules
  /** Acts on all jobs of a filter. */
  readonly bulkActs: BulkActs
  /** Events as they are written, for those who follow them. */
  readonly feed: EventFeed
  readonly #context: Context
  readonly #close: () => Promise<void>
  readonly #waits: Waits
  readonly #claims: Claims
  readonly #together = new SubmitTogether((submissions) => this.#submit(submissions, undefined))

  constructor(context: Context, options: { workerId: string | undefined; close: () => Promise<void> }) {
    this.#context = context
    this.#close = options.close
    this.workerId = options.workerId ?? `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`
    this.schedules = new Schedules(context)
    this.bulkActs = new BulkActs(context)
    this.#waits = new Waits(context)
    this.feed = new EventFeed(context.database)
    this.#claims = new Claims(context, this.workerId, () => this.sweep())
  }

  get #db(): Db {
    return this.#context.database
  }

  /** For packages on top of the engine that keep relations of their own in its schema. */
  get database(): EngineDatabase {
    return this.#context.database
  }

  /** How many connections its pool has, and how many statements wait for one. */
  connections(): { total: number; idle: number; waiting: number } {
    const { totalCount, idleCount, waitingCount } = this.#context.database.pool
    return { total: totalCount, idle: idleCount, waiting: waitingCount }
  }

  /** The operations it was opened with. */
  get operations(): readonly Operation[] {
    return [...this.#context.operations.values()]
  }

  /** Which version the schema has, and which one this release wants. */
  async schemaVersion(): Promise<SchemaVersion> {
    const { database } = this.#context
    return schemaVersion(database.pool, { schema: database.t.schema })
  }

  /**
   * Brings the relations of packages on top of the engine up to date, or refuses them, as the engine was opened: with
   * migrate: true or false.
   */
  async prepareSchema(migrations: readonly MigrationSet[]): Promise<void> {
    const { database, migrates } = this.#context
    const prepare = migrates ? migrate : requireSchema
    await prepare(database.pool, { schema: database.t.schema, migrations })
  }

  /** Submits one job. A conflict on its lock or dedup key is an answer that names the holder, not an error. */
  async submit<Input>(
    operation: Operation<Input> | string,
    payload: Input,
    options: EngineSubmitOptions = {},
  ): Promise<Submitted> {
    const { client, ...rest } = options
    const submission = await this.#prepare(this.#operation(operation), payload, rest)
    if (client === undefined && !isKeyed(submission)) return this.#together.submit(submission)
    const [answer] = await this.#submit([submission], client)
    return answer as Submitted
  }

  /** Submits many jobs of one operation in one transaction; those in conflict are answered so, the others go in. */
  async submitMany<Input>(
    operation: Operation<Input> | string,
    items: readonly SubmitItem<Input>[],
    options: { client?: CallerClient } = {},
  ): Promise<Submitted[]> {
    const found = this.#operation(operation)
    const submissions = await Promise.all(items.map((item) => this.#prepare(found, item.payload, item.options ?? {})))
    return this.#submit(submissions, options.client)
  }

  async #prepare(operation: Operation, payload: unknown, options: SubmitOptions): Promise<Submission> {
    return prepareSubmission(operation, payload, options, this.#context.limits.maxPayloadBytes)
  }

  async #submit(submissions: readonly Submission[], client: CallerClient | undefined): Promise<Submitted[]> {
    const { database, wake } = this.#context
    const write = (db: Db) => insertSubmissions(db, submissions, { from: 'submitter' })
    if (client !== undefined) return write(database.join(client))
    const keyed = submissions.some(isKeyed)
    const alone = keyed ? undefined : wake.alone(submissions)
    if (alone !== undefined) {
      const written = write(alone.db)
      alone.announce() // without waiting for the answer
      return written
    }
    const answers = keyed ? await database.transaction('submit', write) : await write(database)
    wake.submitted(submissions, claimableIds(answers))
    return answers
  }

  /** Tells workers of these queues that there is work: after a commit of your own. */
  wake(...queues: string[]): void {
    this.#context.wake.queues(queues.length > 0 ? queues : [operationDefaults.queue])
  }

  /** Claims due jobs. Finding none, it sweeps and looks once more. */
  async claim(options: EngineClaimOptions = {}): Promise<Attempt[]> {
    return this.#claims.ofQueue(options)
  }

  /** Claims one given job, for push dispatch, and says whether this caller owns it now. */
  async claimJob(jobId: string, options: Omit<EngineClaimOptions, 'limit' | 'queue'> = {}): Promise<ClaimAnswer> {
    const [attempt] = await this.claimJobs([jobId], options)
    return attempt === undefined ? { claimed: false } : { claimed: true, attempt }
  }

  /** The same for several jobs in one statement: the attempts at those that this caller owns now. */
  async claimJobs(
    jobIds: readonly string[],
    options: Omit<EngineClaimOptions, 'limit' | 'queue'> = {},
  ): Promise<Attempt[]> {
    return this.#claims.byIds(jobIds, options)
  }

  /** Renews the leases of all these attempts in one statement; the signals of those whose fence is lost fire. */
  async renew(attempts: readonly Attempt[]): Promise<{ lost: Attempt[] }> {
    return { lost: await renewAttempts(this.#context, this.#db, attempts) }
  }

  /** Runs the attempt's handler once and settles it. Leases are not renewed meanwhile: that is a worker's task. */
  async run(attempt: Attempt): Promise<Settled & { outcome: Outcome }> {
    const outcome = await this.#context.telemetry.running(attempt.claimed, () => execute(this.#context, attempt))
    return { ...(await this.settle(attempt, outcome)), outcome }
  }

  /** Completes the attempt, with the jobs it has chained. A result of defer() makes its job wait for the children. */
  async complete(attempt: Attempt, result?: unknown): Promise<Settled> {
    return this.settle(attempt, await outcomeOf(this.#context, attempt, result))
  }

  /** Reports an error: the job is retried after a delay while attempts remain, unless it is a PermanentError. */
  async fail(attempt: Attempt, error: unknown): Promise<Settled> {
    return this.settle(attempt, outcomeOfError(error))
  }

  /** Gives the job back, due at once, without spending the attempt: its worker is going away. */
  async release(attempt: Attempt, reason: string): Promise<Settled> {
    return this.settle(attempt, { kind: 'released', reason: storableText(reason) })
  }

  /** Writes what an attempt came to, under its fence; lets go of what it still holds if the fence is lost. */
  async settle(attempt: Attempt, outcome: Outcome): Promise<Settled> {
    const [answer] = await this.#settle([{ attempt, outcome }], async () => [
      await settle(this.#context, attempt.claimed, outcome),
    ])
    return answer as Settled
  }

  /** The same for many attempts at once: one statement for each kind of outcome. Answers in order. */
  async settleAll(settlements: readonly { attempt: Attempt; outcome: Outcome }[]): Promise<Settled[]> {
    const claimed = settlements.map(({ attempt, outcome }) => ({ claimed: attempt.claimed, outcome }))
    return this.#settle(settlements, () => settleAll(this.#context, claimed))
  }

  async #settle(
    settlements: readonly { attempt: Attempt; outcome: Outcome }[],
    write: () => Promise<Settled[]>,
  ): Promise<Settled[]> {
    for (const { attempt } of settlements) attempt.reporting()
    try {
      const answers = await write()
      let nth = 0
      for (const { attempt, outcome } of settlements) {
        if (answers[nth]?.settled) this.#context.telemetry.settled(attempt.claimed.operation, outcome.kind)
        else if (!(outcome.kind === 'timed_out' && outcome.handlerRuns)) await attempt.letGo()
        nth += 1
      }
      return answers
    } finally {
      for (const { attempt } of settlements) attempt.reporting()
    }
  }

  /** Claims and runs jobs until the signal fires; resolves when nothing is left running and the database is tidy. */
  async work(options: WorkOptions = {}): Promise<void> {
    await work(this.#context, this, options)
  }

  /** Claims one job, runs it as a worker would, and says what it came to; exitCodeOf() makes an exit code of it. */
  async workOnce(options: WorkOnceOptions = {}): Promise<WorkedOnce> {
    return workOnce(this.#context, this, options)
  }

  /** The worker processes, those seen last first. */
  async workers(): Promise<WorkerInfo[]> {
    return listWorkers(this.#context)
  }

  /** Cancels a pending or running job, with everything that descends from it. */
  async cancel(jobId: string, options: { by?: string } = {}): Promise<Cancelled> {
    const id = checkId(jobId)
    const cancelled = await this.#cancel([id], options.by)
    if (cancelled.includes(id)) return { cancelled: true, jobIds: cancelled }
    const job = await getJob(this.#db, id)
    if (job === undefined) return { cancelled: false, why: 'not_found' }
    return { cancelled: false, why: 'finished', status: job.status as 'completed' | 'failed' | 'cancelled' }
  }

  async #cancel(jobIds: readonly string[], by: string | undefined): Promise<string[]> {
    const rows = await cancelTrees(this.#context.database, jobIds, checkKey(by, 'by'))
    await told(this.#context, rows)
    return rows.jobIds
  }

  /** Puts a stuck running job back, if its claim is older than the stale timeout. */
  async recover(jobId: string, options: { by?: string } = {}): Promise<Recovered> {
    const { limits, wake } = this.#context
    const id = checkId(jobId)
    const answer = await recover(this.#db, id, { staleMs: limits.staleMs, by: checkKey(options.by, 'by') })
    if (answer.recovered) {
      const job = await getJob(this.#db, id)
      if (job !== undefined) wake.jobs([job])
    }
    return answer
  }

  /** Submits a failed or cancelled job anew, as a job that names it. While that one is unfinished, the answer is its id. */
  async runAgain(jobId: string, options: { by?: string } = {}): Promise<RanAgain> {
    const { database, telemetry, wake } = this.#context
    const [id, by] = [checkId(jobId), checkKey(options.by, 'by')]
    const { answers, submissions, jobIds } = await database.transaction('run_again', (db) => runAgainJobs(db, [id], by))
    wake.submitted(submissions, jobIds)
    for (const { operation } of submissions) telemetry.ranAgain(operation)
    return answers[0] as RanAgain
  }

  /** Hides a finished job from reads. */
  async delete(jobId: string, options: { by?: string } = {}): Promise<Deleted> {
    return deleteJob(this.#db, checkId(jobId), checkKey(options.by, 'by'))
  }

  /** Expires attempts whose lease has passed, closes parents, frees locks; undefined when another process sweeps. */
  async sweep(options: SweepOptions = {}): Promise<Swept | undefined> {
    const unlessWithinMs = checkInteger(options.unlessWithinMs ?? 0, 'unlessWithinMs', 0)
    const done = await sweep(this.#db, { unlessWithinMs })
    if (done === undefined) return undefined
    const { swept, queues } = done
    this.#context.telemetry.expired(swept.expired.length + swept.failed.length)
    this.#context.wake.queues(queues)
    return swept
  }

  /** Removes finished jobs older than the retention time, in batches, until none is left; says how many. */
  async retain(options: { batch?: number } = {}): Promise<number> {
    const batch = checkInteger(options.batch ?? 1000, 'batch', 1, 100_000)
    let removed = 0
    for (;;) {
      const some = await removeOldJobs(this.#db, { retentionMs: this.#context.limits.retentionMs, batch })
      removed += some
      if (some === 0) return removed
    }
  }

  /** Refuses new submissions, or submissions and claims, in all processes; 'off' ends it. */
  async setDrain(level: DrainLevel, options: { by?: string } = {}): Promise<void> {
    if (!drainLevels.includes(level)) {
      throw new FencepostError('options_invalid', `drain is ${String(level)}; give one of ${drainLevels.join(', ')}.`)
    }
    await setDrain(this.#db, level, checkKey(options.by, 'by'))
    if (level !== 'all') this.#context.wake.queues(await pendingQueues(this.#db))
  }

  async drain(): Promise<Drain> {
    return getDrain(this.#db)
  }

  /** Stops claims from a queue, in all processes. Submissions and running jobs go on. Paused once, it stays as it is. */
  async pauseQueue(queue: string, options: { by?: string } = {}): Promise<Queue> {
    const by = checkKey(options.by, 'by')
    const changed = await pauseQueue(this.#db, checkQueue(queue), by)
    if (changed) this.#context.logger.info({ queue, by }, 'queue_paused')
    return getQueue(this.#db, queue)
  }

  /** Lets claims from a queue go on, and wakes its workers. */
  async resumeQueue(queue: string, options: { by?: string } = {}): Promise<Queue> {
    const by = checkKey(options.by, 'by')
    const changed = await resumeQueue(this.#db, checkQueue(queue))
    if (changed) this.#context.logger.info({ queue, by }, 'queue_resumed')
    this.#context.wake.queues([queue])
    return getQueue(this.#db, queue)
  }

  /** The queues of its operations, of workers and of pending jobs, and those that are paused, by name. */
  async queues(): Promise<Queue[]> {
    return listQueues(
      this.#db,
      this.operations.map(({ queue }) => queue),
    )
  }

  /** The job, or undefined where there is none or it was deleted. */
  async get(jobId: string, options: { client?: CallerClient } = {}): Promise<Job | undefined> {
    const { client } = options
    return getJob(client === undefined ? this.#db : this.#context.database.join(client), checkId(jobId))
  }

  /**
   * Resolves when the job has ended, or answers that there is none, or that it took too long. One connection listens for
   * all waits of this engine. With `operation`, the result has the type of that operation's results.
   */
  async wait<Result = Json>(jobId: string, options: WaitOptions<Result> = {}): Promise<Waited<Result>> {
    const { operation, signal, timeoutMs } = options
    const id = checkId(jobId)
    const limits = timeoutMs === undefined ? {} : { timeoutMs: checkInteger(timeoutMs, 'timeoutMs', 0) }
    signal?.throwIfAborted()
    const job = await getJob(this.#db, id)
    const found =
      job === undefined || job.completedAt !== undefined
        ? (job ?? 'gone')
        : await this.#waits.wait(id, signal === undefined ? limits : { ...limits, signal })
    return waited(found, operation)
  }

  /** Those of these jobs that are there, by their ids, in one statement. */
  async getMany(jobIds: readonly string[]): Promise<Map<string, Job>> {
    const ids = jobIds.map((jobId) => checkId(jobId))
    return getJobs(this.#db, ids)
  }

  /** Returns the jobs that exist, by id. Those whose values take more than `inlineBytes` in Postgres come without them. */
  async getListed(jobIds: readonly string[], options: { inlineBytes: number }): Promise<Map<string, ListedJob>> {
    const ids = jobIds.map((jobId) => checkId(jobId))
    return getListedJobs(this.#db, ids, options.inlineBytes)
  }

  /** The step results of these jobs, of all their attempts, in order; jobs without any are left out. */
  async steps(jobIds: readonly string[], options: { withoutResults?: boolean } = {}): Promise<Map<string, Step[]>> {
    const ids = jobIds.map((jobId) => checkId(jobId))
    return listStepsOf(this.#db, ids, options)
  }

  /** Jobs that fit every filter, newest first. */
  async list(options: ListOptions = {}): Promise<Job[]> {
    return listJobs(this.#db, options)
  }

  /** How many jobs fit every filter: exact up to 10,000, above that about. */
  async count(filter: JobFilter = {}): Promise<JobCount> {
    return countJobs(this.#db, filter)
  }

  /** A page of summaries, with the values that are asked for, bounded in number and in bytes; newest first. */
  async listPage(options: PageOptions): Promise<JobPage> {
    return listPage(this.#db, options)
  }

  /** A page of the events of a job, oldest first, bounded in number and in bytes. */
  async eventPage(jobId: string, options: EventPageOptions): Promise<EventPage> {
    return listEventPage(this.#db, checkId(jobId), options)
  }

  /** The events of a job, oldest first. */
  async events(jobId: string, options: EventsOptions = {}): Promise<JobEvent[]> {
    return listEvents(this.#db, checkId(jobId), options)
  }

  /** Counts every unfinished job by queue and operation: the more there are, the longer it takes. */
  async depth(): Promise<Depth[]> {
    return countDepth(this.#db)
  }

  /** Counts the jobs that ended in a range of event ids. */
  async endedBetween(range: EndedRange): Promise<Ended> {
    return countEnded(this.#db, range)
  }

  /** Calls back whenever events may have been written, until what it resolves with is called. Look regularly too. */
  async watchEvents(onEvents: () => void): Promise<() => Promise<void>> {
    return watchEvents(this.#context, onEvents)
  }

  /** The children of a job, newest first. */
  async children(jobId: string, options: Pick<ListOptions, 'status' | 'after' | 'limit'> = {}): Promise<Job[]> {
    return listJobs(this.#db, { ...options, parentJobId: jobId })
  }

  /** Why a job is not running; undefined where there is no such job. */
  async explain(jobId: string): Promise<Explanation | undefined> {
    return explainJob(this.#db, checkId(jobId))
  }

  /** The pipeline and its jobs; undefined where no job belongs to it. */
  async pipeline(pipelineId: string): Promise<Pipeline | undefined> {
    return getPipeline(this.#db, checkId(pipelineId, 'pipeline id'))
  }

  /** The pipeline with a page of its jobs, in order of submission; undefined where no job belongs to it. */
  async pipelinePage(
    pipelineId: string,
    options: Pick<PageOptions, 'include' | 'payloadOf' | 'maxBytes' | 'after' | 'limit'>,
  ): Promise<PipelinePage | undefined> {
    return getPipelinePage(this.#db, checkId(pipelineId, 'pipeline id'), options)
  }

  /** Cancels every unfinished job of a pipeline. */
  async abortPipeline(pipelineId: string, options: { by?: string } = {}): Promise<Aborted> {
    const id = checkId(pipelineId, 'pipeline id')
    const jobIds: string[] = []
    // A job that completes meanwhile may chain the next one; that shows up as soon as the first is gone.
    for (;;) {
      const unfinished = await unfinishedOf(this.#db, id)
      if (unfinished.length === 0) break
      jobIds.push(...(await this.#cancel(unfinished, options.by)))
    }
    if (jobIds.length > 0) return { aborted: true, jobIds }
    const known = (await this.pipelinePage(id, { limit: 1, maxBytes: 0 })) !== undefined
    return { aborted: false, why: known ? 'nothing_to_abort' : 'not_found' }
  }

  /** Sends the wake-ups that are waiting and closes the connections; stops an embedded Postgres that nobody else uses. */
  async close(): Promise<void> {
    await this.#waits.close()
    await this.#close()
  }

  #operation(operation: Operation | string): Operation {
    return findOperation(this.#context.operations, operation)
  }
}
