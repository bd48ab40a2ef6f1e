import type { StreamClosed } from '@fencepost/client'
import type { EngineDatabase, Logger } from '@fencepost/engine'
import type { FastifyReply } from 'fastify'
import { revokedAmong } from '../access/tokens.ts'
import { ApiError } from '../error.ts'
import { Stream } from './stream.ts'

/** All streams of a server: pings them, ends those whose token was revoked, and ends all when it stops. */
export class Streams {
  readonly #database: EngineDatabase
  readonly #logger: Logger
  readonly #max: number
  readonly #streams = new Set<Stream>()
  readonly #timer: NodeJS.Timeout
  #closed = false

  constructor(database: EngineDatabase, options: { pingMs: number; maxStreams: number; logger: Logger }) {
    this.#database = database
    this.#logger = options.logger
    this.#max = options.maxStreams
    this.#timer = setInterval(() => void this.#ping(), options.pingMs)
  }

  get size(): number {
    return this.#streams.size
  }

  /** Refuses one more than there may be; before anything of it is sent. */
  requireRoom(): void {
    if (this.#streams.size < this.#max) return
    throw new ApiError('rate_limited', `This server has ${this.#max} streams open, and no room for more.`, {
      headers: { 'retry-after': '5' },
    })
  }

  open(reply: FastifyReply, tokenId: string | undefined): Stream {
    const stream = new Stream(reply, tokenId)
    this.#streams.add(stream)
    stream.onEnd(() => this.#streams.delete(stream))
    if (this.#closed) stream.close('shutdown') // it was asked for before, and has only come so far now
    return stream
  }

  /** Ends the streams of a token. */
  revoked(tokenId: string): void {
    this.#closeAll('token_revoked', (stream) => stream.tokenId === tokenId)
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#timer)
    this.#closeAll('shutdown', () => true)
  }

  #closeAll(reason: StreamClosed['reason'], which: (stream: Stream) => boolean): void {
    for (const stream of this.#streams) if (which(stream)) stream.close(reason)
  }

  async #ping(): Promise<void> {
    for (const stream of this.#streams) stream.ping()
    const tokenIds = [...new Set([...this.#streams].flatMap(({ tokenId }) => tokenId ?? []))]
    if (tokenIds.length === 0) return
    try {
      for (const tokenId of await revokedAmong(this.#database, tokenIds)) this.revoked(tokenId)
    } catch (error) {
      this.#logger.warn({ err: error }, 'tokens_not_checked')
    }
  }
}
