import type { Db } from './database/database.ts'
import type { Fence } from './lifecycle/outcome.ts'
import type { Submission } from './lifecycle/submission.ts'
import type { Logger } from './logger.ts'
import type { WakeUp } from './worker/wake-up.ts'

/*
 * The wake-up, sending side: tells sleeping workers that there is work, after the commit and from another session.
 *
 * Not inside the submitting transaction: a transaction with a NOTIFY in it takes a lock on the whole database when it
 * commits, and concurrent submissions then wait for each other's disk writes. A job that is submitted alone, with
 * nothing announced just before, has its wake-up sent right behind it on the same connection, without waiting for the
 * answer: Postgres commits the one and then runs the other, which does not wait for the disk. Wake-ups that come together
 * are sent as one. Losing one costs time, never a job: workers also look by themselves.
 */

/** What is told to every worker of a schema, as JSON. */
export type Notice =
  | { kind: 'wake'; queue: string }
  /** The job was cancelled while this attempt ran: its worker aborts it at once. */
  | { kind: 'cancel'; job_id: string; attempt_id: string }
  /** Somebody views events: for so long, say when some have been written. */
  | { kind: 'watch'; ms: number }
  /** Events have been written, of whichever jobs. */
  | { kind: 'events' }

/** A job that can be claimed now. */
export interface DueJob {
  jobId: string
  queue: string
}

/** What is sent at once. A job is among `jobs` only for a transport that names jobs. */
export interface Announcements {
  jobs: readonly DueJob[]
  notices: readonly Notice[]
}

/** A connection that runs one statement after another, in the order in which they are sent. */
export interface Behind {
  readonly db: Db
  /** Announces this when everything that was sent before has been answered. Never throws. */
  announce(notice: Notice): void
}

/** Both ends of a wake-up, for one engine: what it announces through, and what its workers listen to. */
export interface Transport {
  /** Whether due jobs are announced one by one, by their ids, or by the queue they are in. */
  readonly namesJobs: boolean
  /** For transports that can: where an announcement goes out right behind a statement. */
  readonly behind?: Behind
  /** Sends, after a while or not at all: what cannot be sent is logged and forgotten. Never throws. */
  send(announcements: Announcements): Promise<void>
  /** One worker's ear. */
  listen(): WakeUp
  close(): Promise<void>
}

/** A way to announce work other than Postgres's own; rabbitMq() makes one. */
export interface WakeUpTransport {
  /** Throws if it can never work. A server that is away is no reason to: it may come back. */
  open(at: { schema: string; logger: Logger }): Promise<Transport>
}

// The most that is kept while a slow transport sends. Past some number of jobs it is better to name their queue anyway:
// workers that hear of a queue claim what is in it in batches.
const maxCancels = 10_000
const maxJobs = 1_000

/** The channel of a schema; Postgres cuts channel names at 63 bytes, so the schema's length is limited too. */
export function channelOf(schema: string): string {
  return `${schema}_notices`
}

/**
 * Sends announcements, one batch at a time. The first goes at once; what comes within a few milliseconds of the last is
 * collected, and each distinct one of it sent once.
 */
export class Wake {
  readonly #transport: Transport
  readonly #logger: Logger
  readonly #delayMs: number
  readonly #jobs = new Map<string, DueJob>()
  readonly #queues = new Set<string>()
  readonly #cancelled = new Map<string, Fence>()
  #watchedUntil = 0
  #written = false
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #sentAt = -Infinity
  #closed = false

  constructor(transport: Transport, logger: Logger, delayMs: number) {
    this.#transport = transport
    this.#logger = logger
    this.#delayMs = delayMs
  }

  /** There may be something new in these queues. */
  queues(queues: Iterable<string>): void {
    for (const queue of queues) this.#queues.add(queue)
    this.#schedule()
  }

  /** These jobs can be claimed now. */
  jobs(jobs: Iterable<DueJob>): void {
    for (const job of jobs) this.#add(job)
    this.#schedule()
  }

  /** What became of submissions: the id of each, in order, undefined for one that was refused. */
  submitted(submissions: readonly Submission[], jobIds: readonly (string | undefined)[]): void {
    for (const [nth, submission] of submissions.entries()) {
      const jobId = jobIds[nth]
      const { queue } = submission
      if (jobId === undefined) continue
      // One that is to wait cannot be claimed yet; but workers should know until when they may sleep.
      if (isLater(submission)) this.#queues.add(queue)
      else this.#add({ jobId, queue })
    }
    this.#schedule()
  }

  /** Where to write a submission whose wake-up is to be sent right behind it, if nothing was announced just now. */
  alone(submissions: readonly Submission[]): { db: Db; announce: () => void } | undefined {
    const [only] = submissions
    if (only === undefined || submissions.length > 1 || isLater(only) || this.#closed || !this.#idle) return undefined
    const { behind } = this.#transport
    if (behind === undefined) return undefined
    this.#sentAt = performance.now()
    return { db: behind.db, announce: () => behind.announce({ kind: 'wake', queue: only.queue }) }
  }

  cancelled(fences: readonly Fence[]): void {
    const room = maxCancels - this.#cancelled.size
    // Their workers learn it all the same, from their next renewal.
    if (fences.length > room) this.#logger.warn({ cancels: fences.length - room }, 'wake_up_not_sent')
    for (const fence of fences.slice(0, room)) this.#cancelled.set(fence.attemptId, fence)
    this.#schedule()
  }

  /** Somebody views events, and wants to know for so long when some are written. */
  watched(ms: number): void {
    this.#watchedUntil = performance.now() + ms
  }

  /** Events may have been written. Costs nothing while nobody views them; only those who listen to Postgres hear it. */
  written(): void {
    if (this.#transport.namesJobs || performance.now() >= this.#watchedUntil) return
    this.#written = true
    this.#schedule()
  }

  /** For a worker of this engine. */
  listen(): WakeUp {
    const heard = this.#transport.listen()
    return {
      start: (queues, concurrency, listener) =>
        heard.start(queues, concurrency, { onWatch: (ms) => this.watched(ms), ...listener }),
      stop: () => heard.stop(),
    }
  }

  /** Sends what is waiting, the last time. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#sending
    if (!this.#empty) await this.#transport.send(this.#take())
    await this.#transport.close()
  }

  #add(job: DueJob): void {
    if (this.#transport.namesJobs && this.#jobs.size < maxJobs) this.#jobs.set(job.jobId, job)
    else this.#queues.add(job.queue)
  }

  get #idle(): boolean {
    const quiet = performance.now() - this.#sentAt >= this.#delayMs
    return quiet && this.#empty && this.#sending === undefined && this.#timer === undefined
  }

  get #empty(): boolean {
    return this.#jobs.size + this.#queues.size + this.#cancelled.size === 0 && !this.#written
  }

  #schedule(): void {
    if (this.#closed || this.#empty || this.#sending !== undefined || this.#timer !== undefined) return
    const waitMs = this.#sentAt + this.#delayMs - performance.now()
    if (waitMs <= 0) void this.#send()
    else this.#timer = setTimeout(() => void this.#send(), waitMs)
  }

  async #send(): Promise<void> {
    this.#timer = undefined
    this.#sentAt = performance.now()
    this.#sending = this.#transport.send(this.#take())
    await this.#sending
    this.#sending = undefined
    this.#schedule() // for what came meanwhile
  }

  #take(): Announcements {
    const jobs = [...this.#jobs.values()]
    const wakes = [...this.#queues].map((queue): Notice => ({ kind: 'wake', queue }))
    const cancels = [...this.#cancelled.values()].map(({ jobId, attemptId }): Notice => ({
      kind: 'cancel',
      job_id: jobId,
      attempt_id: attemptId,
    }))
    this.#jobs.clear()
    this.#queues.clear()
    this.#cancelled.clear()
    const events: Notice[] = this.#written ? [{ kind: 'events' }] : []
    this.#written = false
    return { jobs, notices: [...cancels, ...wakes, ...events] }
  }
}

function isLater({ runAfter, delayMs }: Submission): boolean {
  return runAfter !== undefined || delayMs > 0
}
