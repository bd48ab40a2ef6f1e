import type { Context } from '../context.ts'
import { sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { getJobs, type Job } from './job.ts'
import type { WaitOptions } from './waited.ts'
import { watchEvents } from './watch-events.ts'

/*
 * Waiting for jobs to end, without polling each of them. All waits of an engine share one connection that listens, and one
 * statement that asks which of their jobs have ended. It is sent when events may have been written, and every few seconds
 * in any case: a notice may be lost, and not everybody sends them.
 */

/** What a wait came to: the job, undefined where there is none any more, or that it took too long. */
type Found = Job | 'gone' | 'timeout'

interface Waiting {
  found: (found: Found) => void
  failed: (error: unknown) => void
}

const lookEveryMs = 2_000
/** How long after a look the next one comes at the earliest. */
const restMs = 10
/** How long to go on listening when nobody waits any more. */
const idleMs = 10_000

/** The waits of one engine. */
export class Waits {
  readonly #context: Context
  readonly #waiting = new Map<string, Set<Waiting>>()
  #watching: Promise<() => Promise<void>> | undefined
  #lookTimer: NodeJS.Timeout | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #looking = false
  #lookAgain = false
  #closed = false

  constructor(context: Context) {
    this.#context = context
  }

  /** Resolves when the job is not among the unfinished ones, or after `timeoutMs`. */
  async wait(jobId: string, { signal, timeoutMs }: Pick<WaitOptions, 'signal' | 'timeoutMs'>): Promise<Found> {
    signal?.throwIfAborted()
    if (this.#closed) throw closed()
    let timer: NodeJS.Timeout | undefined
    let onAbort = () => {}
    let waiting: Waiting | undefined
    try {
      return await new Promise<Found>((found, failed) => {
        waiting = { found, failed }
        if (timeoutMs !== undefined) timer = setTimeout(() => found('timeout'), timeoutMs)
        onAbort = () => failed(signal?.reason as Error)
        signal?.addEventListener('abort', onAbort, { once: true })
        this.#add(jobId, waiting)
      })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      if (waiting !== undefined) this.#remove(jobId, waiting)
    }
  }

  /** Ends all waits with an error, and stops listening. */
  async close(): Promise<void> {
    this.#closed = true
    for (const some of this.#waiting.values()) for (const { failed } of some) failed(closed())
    await this.#stop()
  }

  #add(jobId: string, waiting: Waiting): void {
    const some = this.#waiting.get(jobId) ?? new Set()
    this.#waiting.set(jobId, some.add(waiting))
    clearTimeout(this.#idleTimer)
    void this.#look() // it may have ended already
    this.#watching ??= this.#watch()
    this.#lookTimer ??= setInterval(() => void this.#look(), lookEveryMs)
  }

  #remove(jobId: string, waiting: Waiting): void {
    const some = this.#waiting.get(jobId)
    some?.delete(waiting)
    if (some?.size === 0) this.#waiting.delete(jobId)
    if (this.#waiting.size > 0 || this.#closed) return
    clearInterval(this.#lookTimer)
    this.#lookTimer = undefined
    this.#idleTimer = setTimeout(() => void this.#stop(), idleMs)
    this.#idleTimer.unref()
  }

  // What ended before anybody listened is found by the look that follows.
  async #watch(): Promise<() => Promise<void>> {
    const stop = await watchEvents(this.#context, () => void this.#look())
    void this.#look()
    return stop
  }

  async #stop(): Promise<void> {
    clearInterval(this.#lookTimer)
    clearTimeout(this.#idleTimer)
    const watching = this.#watching
    this.#watching = undefined
    await (
      await watching
    )?.()
  }

  async #look(): Promise<void> {
    this.#lookAgain = true
    if (this.#looking) return
    this.#looking = true
    try {
      while (this.#lookAgain && this.#waiting.size > 0 && !this.#closed) {
        this.#lookAgain = false
        await this.#tell()
        await new Promise((resolve) => setTimeout(resolve, restMs))
      }
    } catch (error) {
      if (!this.#closed) this.#context.logger.warn({ err: error, jobs: this.#waiting.size }, 'wait_failed')
    } finally {
      this.#looking = false
    }
  }

  async #tell(): Promise<void> {
    const { database } = this.#context
    const { t } = database
    const over = await database.query<{ job_id: string }>(
      'wait',
      sql`select wanted.job_id from unnest(${[...this.#waiting.keys()]}::uuid[]) wanted (job_id)
           where not exists (select from ${t.liveJobs} live where live.job_id = wanted.job_id)`,
    )
    if (over.length === 0) return
    const jobs = await getJobs(
      database,
      over.map((row) => row.job_id),
    )
    for (const { job_id: jobId } of over) {
      for (const { found } of this.#waiting.get(jobId) ?? []) found(jobs.get(jobId) ?? 'gone')
    }
  }
}

function closed(): FencepostError {
  return new FencepostError('engine_closed', 'The engine has been closed; nobody waits for the job any more.')
}
