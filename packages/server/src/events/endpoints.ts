import { routes, terminalEvents } from '@fencepost/client'
import type { Engine, JobEvent } from '@fencepost/engine'
import type { FastifyRequest } from 'fastify'
import { callerKey, endpoint, type Call, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import type { JobReader } from '../jobs/job-reader.ts'
import { eventPage } from '../jobs/page.ts'
import { eventJson } from '../jobs/present.ts'
import { Turns } from '../turns.ts'
import type { AllFeed } from './all-feed.ts'
import type { JobFeed } from './job-feed.ts'
import type { Listening } from './listening.ts'
import type { Numbered, Stream } from './stream.ts'
import type { Streams, Viewer } from './streams.ts'

/** What live events are made of. */
export interface Live {
  jobFeed: JobFeed
  allFeed: AllFeed
  listening: Listening
  streams: Streams
}

// How much of the past is read at once, for one viewer.
const page = { limit: 200, maxBytes: 262_144 }
const listedAtOnce = 4
// How many new events are kept for a viewer who still reads the past.
const maxEarly = 10_000

export function eventEndpoints(
  engine: Engine,
  jobs: JobReader,
  live: Live,
  { maxAnswerBytes }: { maxAnswerBytes: number },
): readonly Endpoint[] {
  const lists = new Turns(listedAtOnce)
  return [
    endpoint(routes.jobEvents, async ({ params, query, caller, request }) => {
      const job = await jobs.existing(params.job_id)
      const { after, limit } = query
      const from = jobCursor(request.headers['last-event-id'] ?? after ?? '0')
      if (!wantsStream(request)) {
        const options = { after: from.after, ...(limit === undefined ? {} : { limit }) }
        const read = () => eventPage(engine, job.jobId, options, maxAnswerBytes, eventJson)
        const { items, headers } = await lists.take(callerKey({ caller, request }), read)
        return { json: `[${items.join(',')}]`, headers }
      }
      const viewer = viewerOf({ caller, request })
      live.streams.requireRoom(viewer)
      return {
        stream: async (reply) => {
          const stream = live.streams.open(reply, viewer)
          await new JobViewer(engine, live, stream, job.jobId).view(from, isFinished(job.status))
        },
      }
    }),
    endpoint(routes.events, async ({ caller, request }) => {
      if (request.method === 'HEAD') return { body: '' }
      const resumed = request.headers['last-event-id']
      const from = resumed === undefined ? undefined : allCursor(resumed)
      const viewer = viewerOf({ caller, request })
      live.streams.requireRoom(viewer)
      return {
        stream: async (reply) => {
          await viewAll(live, live.streams.open(reply, viewer), from)
        },
      }
    }),
  ]
}

/*
 * The id of an event on a job's stream is `<largest event id sent>.<number of events sent up to it>`. A viewer who
 * resumes was sent everything up to that id if there are still as many; if an event with a smaller id was committed
 * since, nobody knows which, and all are sent again. An event id alone, as JSON has it, can be resumed from too.
 */
interface JobCursor {
  after: string
  sent: number | undefined
}

class JobViewer {
  readonly #engine: Engine
  readonly #live: Live
  readonly #stream: Stream
  readonly #jobId: string
  /** Sent, and above the feed's floor: what the feed may tell again. */
  readonly #sent = new Set<string>()
  #largest = 0n
  #count = 0
  /** What was told before the past had been sent; undefined from then on. */
  #early: JobEvent[] | undefined = []

  constructor(engine: Engine, live: Live, stream: Stream, jobId: string) {
    this.#engine = engine
    this.#live = live
    this.#stream = stream
    this.#jobId = jobId
  }

  /** Past events first, then live ones, until the job or the viewer is gone. */
  async view(from: JobCursor, finished: boolean): Promise<void> {
    this.#stream.begin()
    try {
      if (!finished) await this.#watch()
      const ended = await this.#catchUp(await this.#start(from))
      if (ended) this.#stream.close('job_finished')
      const early = this.#early ?? []
      this.#early = undefined
      this.#told(early)
    } catch {
      // The answer has begun, so there is no status to say it with; the viewer resumes and is told then.
      this.#stream.close('unavailable')
    }
  }

  async #watch(): Promise<void> {
    const { jobFeed, listening } = this.#live
    this.#stream.onEnd(listening.hold())
    this.#stream.onEnd(await jobFeed.watch(this.#jobId, (events) => this.#told(events)))
  }

  /** The id after which to begin. */
  async #start({ after, sent }: JobCursor): Promise<string> {
    const there = after === '0' ? 0 : await this.#engine.feed.countUpTo(this.#jobId, after)
    if (sent !== undefined && sent !== there) return '0'
    this.#largest = BigInt(after)
    this.#count = there
    return after
  }

  /** Sends what is there; true when the job has ended and all of it was sent. */
  async #catchUp(start: string): Promise<boolean> {
    let after = start
    // Asked first: what the events are read after says whether they are all.
    const job = (await this.#engine.getListed([this.#jobId], { inlineBytes: 0 })).get(this.#jobId)
    const finished = isFinished(job?.status)
    for (;;) {
      const { events, more } = await this.#engine.eventPage(this.#jobId, { after, ...page })
      await this.#stream.pastEvents(this.#numbered(events))
      after = events.at(-1)?.id ?? after
      if (this.#stream.ended || events.some(({ event }) => terminalEvents.includes(event))) return true
      if (!more) return finished
    }
  }

  #told(events: readonly JobEvent[]): void {
    if (this.#early !== undefined) {
      this.#early.push(...events)
      if (this.#early.length > maxEarly) this.#stream.cutOff()
      return
    }
    this.#send(events)
    if (events.some(({ event }) => terminalEvents.includes(event))) this.#stream.close('job_finished')
  }

  #send(events: readonly JobEvent[]): void {
    this.#stream.events(this.#numbered(events))
    const { floor } = this.#live.jobFeed
    for (const id of this.#sent) if (BigInt(id) <= floor) this.#sent.delete(id)
  }

  /** Those that were not sent yet. */
  #numbered(events: readonly JobEvent[]): Numbered[] {
    return events.flatMap((event) => {
      if (this.#sent.has(event.id)) return []
      this.#sent.add(event.id)
      this.#count += 1
      const id = BigInt(event.id)
      if (id > this.#largest) this.#largest = id
      return { event, id: `${this.#largest}.${this.#count}` }
    })
  }
}

/*
 * The id of an event on the stream of all jobs is `<event id>.<floor>`: everything up to the floor was sent. Resuming
 * begins at the floor, so a viewer may get the events of the last seconds again; their ids tell them apart.
 */
async function viewAll(live: Live, stream: Stream, resumeAt: bigint | undefined): Promise<void> {
  const { allFeed, listening } = live
  stream.onEnd(listening.hold())
  const sent = new Set<string>()
  let waiting: JobEvent[] | undefined = []
  const send = (events: readonly JobEvent[]) => {
    const { floor } = allFeed
    const news = events.filter(({ id }) => !sent.has(id))
    for (const { id } of news) sent.add(id)
    stream.events(news.map((event) => ({ event, id: `${event.id}.${floor}` })))
    if (waiting !== undefined) return
    for (const id of sent) if (BigInt(id) <= floor) sent.delete(id)
  }
  try {
    stream.onEnd(
      await allFeed.watch((events) => {
        if (waiting === undefined) send(events)
        else waiting.push(...events)
      }),
    )
    stream.begin()
    if (resumeAt !== undefined) send(await allFeed.since(resumeAt))
    const missed = waiting
    waiting = undefined
    send(missed)
  } catch {
    stream.close('unavailable')
  }
}

function viewerOf(call: Pick<Call, 'caller' | 'request'>): Viewer {
  return { tokenId: call.caller.tokenId, key: callerKey(call) }
}

function wantsStream({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept ?? '').includes('text/event-stream')
}

function isFinished(status: string | undefined): boolean {
  return status !== 'pending' && status !== 'running'
}

const cursorPattern = /^(\d{1,18})(?:\.(\d{1,18}))?$/

function jobCursor(text: string | string[]): JobCursor {
  const match = cursorPattern.exec(String(text))
  if (match?.[1] === undefined) throw badCursor()
  return { after: match[1], sent: match[2] === undefined ? undefined : Number(match[2]) }
}

function allCursor(text: string | string[]): bigint {
  const match = cursorPattern.exec(String(text))
  if (match?.[1] === undefined) throw badCursor()
  return BigInt(match[2] ?? match[1])
}

function badCursor(): ApiError {
  return new ApiError('request_invalid', 'Last-Event-ID is not valid: give the id of an event that was received.', {
    details: { issues: [{ path: 'headers.last-event-id', message: 'give the id of an event that was received' }] },
  })
}
