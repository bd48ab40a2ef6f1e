import { streamClosedEvent, type StreamClosed } from '@fencepost/client'
import type { JobEvent } from '@fencepost/engine'
import type { FastifyReply } from 'fastify'
import { eventJson } from '../jobs/present.ts'

// What a viewer may leave unread before he is sent away; he can come back and resume.
const maxUnreadBytes = 1_048_576
const reconnectMs = 1_000

// The feed gives all viewers the same event: it is written as JSON once.
const written = new WeakMap<JobEvent, string>()

function dataOf(event: JobEvent): string {
  const data = written.get(event) ?? JSON.stringify(eventJson(event))
  written.set(event, data)
  return data
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
      connection: 'keep-alive',
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

  /** Sends events, each with the id that resumes after it, in one piece. */
  events(events: readonly { event: JobEvent; id: string }[]): void {
    if (events.length === 0) return
    this.#write(events.map(({ event, id }) => `id: ${id}\nevent: ${event.event}\ndata: ${dataOf(event)}\n\n`).join(''))
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

  /** Resolves when the viewer has read enough to be sent more, or is gone. */
  async drained(): Promise<void> {
    const { raw } = this.#reply
    if (this.#ended || !raw.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      raw.once('drain', resolve)
      this.onEnd(resolve)
    })
  }

  #write(text: string): void {
    if (this.#ended || !this.#begun) return
    const { raw } = this.#reply
    raw.write(text)
    if (raw.writableLength <= maxUnreadBytes) return
    this.close('too_slow')
    raw.destroy()
  }

  #end(): void {
    if (this.#ended) return
    this.#ended = true
    for (const callback of this.#onEnd.splice(0)) callback()
  }
}
