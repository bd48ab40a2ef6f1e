import { streamClosedEvent, type StreamClosed } from '@fencepost/client'
import type { JobEvent } from '@fencepost/engine'
import type { FastifyReply } from 'fastify'
import { eventJson } from '../jobs/present.ts'

// A viewer who has left more than this unread when there is something to send is sent away; he can come back and resume.
const maxUnreadBytes = 1_048_576
// How much of the past is sent at once.
const pieceLength = 65_536
const reconnectMs = 1_000

/** An event, with the id that resumes after it. */
export interface Numbered {
  event: JobEvent
  id: string
}

// The feed gives all viewers the same event: it is written as JSON once.
const written = new WeakMap<JobEvent, string>()

function dataOf(event: JobEvent): string {
  const data = written.get(event) ?? JSON.stringify(eventJson(event))
  written.set(event, data)
  return data
}

function textOf({ event, id }: Numbered): string {
  return `id: ${id}\nevent: ${event.event}\ndata: ${dataOf(event)}\n\n`
}

/** One viewer's text/event-stream. */
export class Stream {
  readonly tokenId: string | undefined
  readonly #reply: FastifyReply
  readonly #onEnd: (() => void)[] = []
  #begun = false
  #ended = false

  constructor(reply: FastifyReply, tokenId: string | undefined) {
    this.tokenId = tokenId
    this.#reply = reply
    reply.hijack()
    reply.raw.on('close', () => this.#end())
    reply.raw.on('error', () => this.#end()) // a viewer who hung up
  }

  /** Sends the headers: from here on the viewer knows that nothing passes him by. */
  begin(): void {
    if (this.#ended || this.#begun) return
    this.#begun = true
    this.#reply.raw.writeHead(200, {
      ...(this.#reply.getHeaders() as Record<string, string>),
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
      connection: 'close', // for when it has ended
    })
    this.#write(`retry: ${reconnectMs}\n\n`)
  }

  get ended(): boolean {
    return this.#ended
  }

  /** Calls back once, when the viewer has gone or was sent away. */
  onEnd(callback: () => void): void {
    if (this.#ended) callback()
    else this.#onEnd.push(callback)
  }

  /** Sends events at once, in one piece. */
  events(events: readonly Numbered[]): void {
    if (events.length > 0) this.#write(events.map(textOf).join(''))
  }

  /** Sends events as fast as the viewer reads them. */
  async pastEvents(events: readonly Numbered[]): Promise<void> {
    let piece = ''
    for (const [nth, event] of events.entries()) {
      piece += textOf(event)
      if (piece.length < pieceLength && nth < events.length - 1) continue
      this.#write(piece)
      piece = ''
      await this.#drained()
    }
  }

  ping(): void {
    this.#write(': ping\n\n')
  }

  /** Ends it, with an event that says why. */
  close(reason: StreamClosed['reason']): void {
    if (this.#ended) return
    this.begin()
    const data: StreamClosed = { reason }
    this.#reply.raw.end(`event: ${streamClosedEvent}\ndata: ${JSON.stringify(data)}\n\n`)
    this.#end()
  }

  /** Sends a viewer away who does not keep up, and forgets what he has not read. */
  cutOff(): void {
    if (this.#ended) return
    this.close('too_slow')
    this.#reply.raw.destroy()
  }

  /** Resolves when the viewer has read enough to be sent more, or is gone. */
  async #drained(): Promise<void> {
    const { raw } = this.#reply
    if (this.#ended || !raw.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      raw.once('drain', resolve)
      this.onEnd(resolve)
    })
  }

  #write(text: string): void {
    if (this.#ended || !this.#begun) return
    // Looked at before, not after: what comes in one piece, however large, is no fault of his.
    if (this.#reply.raw.writableLength <= maxUnreadBytes) this.#reply.raw.write(text)
    else this.cutOff()
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    for (const callback of this.#onEnd.splice(0)) callback()
  }
}
