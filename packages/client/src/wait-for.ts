import { anySignal } from './any-signal.ts'
import { FencepostApiError } from './errors.ts'
import { terminalEvents } from './event.ts'
import { follow, pause } from './follow.ts'
import type { Job } from './job.ts'
import { call, type Connection } from './request.ts'
import { routes } from './routes.ts'

export interface WaitOptions {
  signal?: AbortSignal | undefined
  /** How long to wait; for ever if left out. */
  timeoutMs?: number | undefined
  /** Never stream: for proxies that keep streams back. */
  poll?: boolean | undefined
  /** How often the job is looked at while its events are streamed; every 30 seconds if left out. */
  lookEveryMs?: number | undefined
}

/** Thrown by waitFor() when the job has not ended in time. */
export class WaitTimeoutError extends Error {
  readonly jobId: string

  constructor(jobId: string, timeoutMs: number) {
    super(`Job ${jobId} has not ended within ${timeoutMs} ms.`)
    this.name = 'WaitTimeoutError'
    this.jobId = jobId
  }
}

const defaultPollMs = 5_000
// A proxy may keep a stream back: the job is looked at so often all the same.
const defaultLookMs = 30_000
// A server that is restarted is back by then; where events cannot be streamed at all, that is known at once.
const reconnectMs = 10_000

/** Resolves with the job when it has ended: by its events where they can be streamed, else by asking. */
export async function waitFor(connection: Connection, jobId: string, options: WaitOptions = {}): Promise<Job> {
  const timeout = options.timeoutMs === undefined ? undefined : AbortSignal.timeout(options.timeoutMs)
  const signal = anySignal([options.signal, timeout])
  try {
    return await waitUntilEnded(connection, jobId, { ...options, signal })
  } catch (error) {
    options.signal?.throwIfAborted()
    if (timeout?.aborted) throw new WaitTimeoutError(jobId, options.timeoutMs ?? 0)
    throw error
  }
}

async function waitUntilEnded(connection: Connection, jobId: string, options: WaitOptions): Promise<Job> {
  const { signal } = options
  const over = new AbortController()
  let told: Promise<Told> | undefined = options.poll === true ? Promise.resolve('no stream') : undefined
  try {
    for (;;) {
      const seen = await look(connection, jobId, signal)
      if ('job' in seen) return seen.job
      // One stream for as long as it lasts: it resumes where it broke, and brings nothing twice.
      told ??= untilTerminalEvent(connection, jobId, anySignal([signal, over.signal]))
      const news = await within(options.lookEveryMs ?? defaultLookMs, told, signal)
      if (news === 'terminal event') told = Promise.resolve('no stream')
      if (news === 'no stream') await pause(seen.waitMs, signal)
      signal?.throwIfAborted()
    }
  } finally {
    over.abort()
  }
}

/** The job if it has ended; else how long to wait before it is worth asking again. */
async function look(
  connection: Connection,
  jobId: string,
  signal: AbortSignal | undefined,
): Promise<{ job: Job } | { waitMs: number }> {
  try {
    const { body, headers } = await call(connection, routes.getJob, { params: { job_id: jobId } }, { signal })
    if (body.status !== 'pending' && body.status !== 'running') return { job: body }
    return { waitMs: Number(headers.get('retry-after') ?? defaultPollMs / 1000) * 1000 }
  } catch (error) {
    if (!(error instanceof FencepostApiError) || !error.retryable) throw error
    return { waitMs: (error.retryAfterSeconds ?? 1) * 1000 }
  }
}

type Told = 'terminal event' | 'no stream'

/** Reads events until the job has ended, or until it is clear that they cannot be streamed. */
async function untilTerminalEvent(
  connection: Connection,
  jobId: string,
  signal: AbortSignal | undefined,
): Promise<Told> {
  try {
    const options = { signal, giveUpAfterMs: reconnectMs }
    for await (const event of follow(connection, routes.jobEvents, { job_id: jobId }, options)) {
      if (terminalEvents.includes(event.event)) break
    }
    return 'terminal event'
  } catch (error) {
    // What the server refuses, it refuses when it is asked for the job, too. Anything else is a fault, and is thrown.
    if (error instanceof FencepostApiError) return 'no stream'
    throw error
  }
}

/** What is told, or undefined after so long. */
async function within(ms: number, told: Promise<Told>, signal: AbortSignal | undefined): Promise<Told | undefined> {
  const enough = new AbortController()
  const patience = pause(ms, anySignal([signal, enough.signal])).then(() => undefined)
  try {
    return await Promise.race([told, patience])
  } finally {
    enough.abort()
  }
}
