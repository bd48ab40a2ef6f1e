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
// A stream that says nothing may be kept back by a proxy: the job is looked at so often all the same.
const streamPatienceMs = 30_000
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
  for (;;) {
    let waitMs = defaultPollMs
    let told = false
    try {
      const { body, headers } = await call(connection, routes.getJob, { params: { job_id: jobId } }, { signal })
      if (body.status !== 'pending' && body.status !== 'running') return body
      waitMs = Number(headers.get('retry-after') ?? defaultPollMs / 1000) * 1000
      if (options.poll !== true) told = await untilTerminalEvent(connection, jobId, signal)
    } catch (error) {
      if (!(error instanceof FencepostApiError) || !error.retryable) throw error
      waitMs = (error.retryAfterSeconds ?? 1) * 1000
    }
    if (!told) await pause(waitMs, signal)
    signal?.throwIfAborted()
  }
}

/** True when it is time to look at the job again; false when events cannot be streamed. */
async function untilTerminalEvent(connection: Connection, jobId: string, signal: AbortSignal | undefined) {
  const patience = AbortSignal.timeout(streamPatienceMs)
  const options = { signal: anySignal([signal, patience]), giveUpAfterMs: reconnectMs }
  try {
    for await (const event of follow(connection, routes.jobEvents, { job_id: jobId }, options)) {
      if (terminalEvents.includes(event.event)) return true
    }
    return true
  } catch {
    return false
  }
}

// Node 20 has AbortSignal.any(), not every browser does.
function anySignal(signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter((signal) => signal !== undefined)
  if (given.length < 2) return given[0]
  const controller = new AbortController()
  for (const signal of given) {
    const abort = () => controller.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true, signal: controller.signal })
  }
  return controller.signal
}
