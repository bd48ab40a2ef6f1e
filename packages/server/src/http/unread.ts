import type { Logger } from '@fencepost/engine'
import type { FastifyReply } from 'fastify'
import { aboutRequest } from './access-log.ts'

// The system takes smaller answers from the process at once, read or not.
const fromBytes = 16_384

interface Waiting {
  reply: FastifyReply
  bytes: number
}

/**
 * Bounds the memory of answers that their callers have not read. Beyond the bound, the caller with most of it loses the
 * connection that has waited longest; never the one whose answer has just been made, so whoever reads gets his.
 */
export class Unread {
  readonly #maxBytes: number
  readonly #logger: Logger
  readonly #callers = new Map<string, Set<Waiting>>()
  #bytes = 0

  constructor(options: { maxUnreadBytes: number; logger: Logger }) {
    this.#maxBytes = options.maxUnreadBytes
    this.#logger = options.logger
  }

  /** Counts an answer, which is about to be sent, until it has been taken or its connection is gone. */
  add(caller: string, reply: FastifyReply, bytes: number): void {
    if (bytes < fromBytes || reply.raw.destroyed) return
    const one = { reply, bytes }
    const own = this.#callers.get(caller) ?? new Set()
    this.#callers.set(caller, own.add(one))
    this.#bytes += bytes
    reply.raw.once('close', () => this.#remove(caller, one))
    while (this.#bytes > this.#maxBytes) {
      const longest = this.#ofLargest(one)
      if (longest === undefined) return
      this.#cutOff(...longest)
    }
  }

  #ofLargest(but: Waiting): [string, Waiting] | undefined {
    let largest: [string, Waiting] | undefined
    let most = 0
    for (const [caller, own] of this.#callers) {
      const others = [...own].filter((one) => one !== but)
      const bytes = others.reduce((sum, one) => sum + one.bytes, 0)
      if (others[0] !== undefined && bytes > most) [largest, most] = [[caller, others[0]], bytes]
    }
    return largest
  }

  #cutOff(caller: string, one: Waiting): void {
    this.#remove(caller, one)
    this.#logger.warn({ ...aboutRequest(one.reply.request), bytes: one.bytes }, 'answer_unread')
    one.reply.raw.destroy()
  }

  #remove(caller: string, one: Waiting): void {
    const own = this.#callers.get(caller)
    if (own?.delete(one) !== true) return
    this.#bytes -= one.bytes
    if (own.size === 0) this.#callers.delete(caller)
  }
}
