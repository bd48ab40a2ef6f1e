import { FencepostApiError } from './errors.ts'
import { jobEvent, streamClosed, streamClosedEvent, type JobEvent } from './event.ts'
import { readEventStream, StreamIdleError } from './event-stream.ts'
import { openStream, type Connection } from './request.ts'
import type { Route } from './route.ts'

export interface FollowOptions {
  /** Only events after this one. */
  after?: string | undefined
  signal?: AbortSignal | undefined
  /** How long connecting may fail, without an event between, before the error is thrown; for ever if left out. */
  giveUpAfterMs?: number | undefined
  /** How long nothing may come, not even a ping, before the connection is made again; 60 seconds if left out. */
  idleMs?: number | undefined
}

// Four pings of a server with default options.
const defaultIdleMs = 60_000
const firstDelayMs = 100
const maxDelayMs = 10_000
// So many of the events given last are told apart from those that come again after resuming.
const maxRemembered = 100_000

/**
 * Live events over a connection that may break: it is made again, with growing delays, and goes on after the last event
 * that was received. Ends after the job's terminal event. An event is not given twice, unless 100,000 came between.
 */
export async function* follow(
  connection: Connection,
  route: Route,
  params: Record<string, string>,
  options: FollowOptions,
): AsyncGenerator<JobEvent, void> {
  const { signal, giveUpAfterMs = Number.POSITIVE_INFINITY } = options
  const given = new Set<string>()
  let last = options.after
  let delayMs = firstDelayMs
  let failingSince: number | undefined
  while (!signal?.aborted) {
    try {
      for await (const message of messages(connection, route, params, last, options)) {
        delayMs = firstDelayMs
        failingSince = undefined
        if (message.event === streamClosedEvent) {
          if (streamClosed.parse(JSON.parse(message.data)).reason === 'job_finished') return
          break
        }
        last = message.id ?? last
        const event = jobEvent.parse(JSON.parse(message.data))
        if (given.has(event.id)) continue
        given.add(event.id)
        if (given.size > maxRemembered) for (const oldest of given) if (given.delete(oldest)) break
        yield event
      }
    } catch (error) {
      if (signal?.aborted) return
      failingSince ??= Date.now()
      if (!mayResume(error) || Date.now() - failingSince >= giveUpAfterMs) throw error
      const asked = (error as FencepostApiError).retryAfterSeconds
      if (asked !== undefined) delayMs = Math.max(delayMs, Math.min(asked * 1000, maxDelayMs))
    }
    await pause(delayMs * (0.5 + Math.random() / 2), signal)
    delayMs = Math.min(maxDelayMs, delayMs * 2)
  }
}

async function* messages(
  connection: Connection,
  route: Route,
  params: Record<string, string>,
  last: string | undefined,
  { signal, idleMs = defaultIdleMs }: FollowOptions,
) {
  const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last }
  const response = await openStream(connection, route, { params, headers }, { signal })
  if (response.body === null) return
  yield* readEventStream(response.body, idleMs)
}

// A connection that breaks in the middle of a stream is an error of fetch, not one of ours.
function mayResume(error: unknown): boolean {
  if (error instanceof FencepostApiError) return error.retryable
  return error instanceof TypeError || error instanceof StreamIdleError
}

/** Waits; no longer than the signal allows. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms)
    function done() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    signal?.addEventListener('abort', done)
  })
}
