import type { StreamClosed } from '@fencepost/client'
import type { EngineDatabase, Logger } from '@fencepost/engine'
import type { FastifyReply } from 'fastify'
import { revokedAmong } from '../access/tokens.ts'
import { ApiError } from '../error.ts'
import { Stream } from './stream.ts'

export interface StreamsOptions {
  pingMs: number
  maxStreams: number
  maxStreamsPerCaller: number
  /** True while no token is needed. */
  isOpen: () => Promise<boolean>
  logger: Logger
}

/** Whose a stream is. */
export interface Viewer {
  tokenId: string | undefined
  /** As callerKey() has it. */
  key: string
}

/**
 * All streams of a server: pings them, ends those whose token was revoked, those without one once one is needed, and all
 * when it stops.
 */
export class Streams {
  readonly #database: EngineDatabase
  readonly #options: StreamsOptions
  readonly #streams = new Set<Stream>()
  readonly #perCaller = new Map<string, number>()
  readonly #timer: NodeJS.Timeout
  #closed = false

  constructor(database: EngineDatabase, options: StreamsOptions) {
    this.#database = database
    this.#options = options
    this.#timer = setInterval(() => void this.#ping(), options.pingMs)
  }

  get size(): number {
    return this.#streams.size
  }

  /** Refuses one more than there may be; before anything of it is sent. */
  requireRoom(viewer: Viewer): void {
    const { maxStreams, maxStreamsPerCaller } = this.#options
    const full = this.#streams.size >= maxStreams
    if (!full && (this.#perCaller.get(viewer.key) ?? 0) < maxStreamsPerCaller) return
    const message = full
      ? `This server has ${maxStreams} streams open, and no room for more.`
      : `This caller has ${maxStreamsPerCaller} streams open, as many as one may have. Close one, or follow GET /events.`
    throw new ApiError('rate_limited', message, { headers: { 'retry-after': '5' } })
  }

  open(reply: FastifyReply, viewer: Viewer): Stream {
    const stream = new Stream(reply, viewer.tokenId)
    const caller = viewer.key
    this.#streams.add(stream)
    this.#perCaller.set(caller, (this.#perCaller.get(caller) ?? 0) + 1)
    stream.onEnd(() => {
      this.#streams.delete(stream)
      const left = (this.#perCaller.get(caller) ?? 1) - 1
      if (left > 0) this.#perCaller.set(caller, left)
      else this.#perCaller.delete(caller)
    })
    if (this.#closed) stream.close('shutdown') // it was asked for before, and has only come so far now
    return stream
  }

  /** Ends the streams of a token. */
  revoked(tokenId: string): void {
    this.#closeAll('token_revoked', (stream) => stream.tokenId === tokenId)
  }

  /** Ends the streams that were opened without a token: from now on one is needed. */
  tokenMade(): void {
    this.#closeAll('token_needed', (stream) => stream.tokenId === undefined)
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
    const holders = new Set([...this.#streams].map(({ tokenId }) => tokenId))
    const tokenIds = [...holders].filter((tokenId) => tokenId !== undefined)
    try {
      // Another server may have made the first token, or revoked one.
      if (holders.has(undefined) && !(await this.#options.isOpen())) this.tokenMade()
      if (tokenIds.length === 0) return
      for (const tokenId of await revokedAmong(this.#database, tokenIds)) this.revoked(tokenId)
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'tokens_not_checked')
    }
  }
}
