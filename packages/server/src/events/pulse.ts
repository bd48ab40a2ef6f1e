import type { Logger } from '@fencepost/engine'

const retryMs = 1_000

export interface PulseOptions {
  read: () => Promise<void>
  wanted: () => boolean
  pollMs: number
  /** How many times as long as a read took it rests before the next: a slow one must not become a load. */
  restPerRead: number
  logger: Logger
}

/** Reads again and again while somebody wants it: when told to, and after `pollMs` all the same. One read at a time. */
export class Pulse {
  readonly #read: () => Promise<void>
  readonly #wanted: () => boolean
  readonly #pollMs: number
  readonly #restPerRead: number
  readonly #logger: Logger
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #reading: Promise<void> | undefined
  #told = false
  #failing = false
  #restUntil = 0
  #closed = false

  constructor(options: PulseOptions) {
    this.#read = options.read
    this.#wanted = options.wanted
    this.#pollMs = options.pollMs
    this.#restPerRead = options.restPerRead
    this.#logger = options.logger
  }

  /** Reads now, or as soon as the read under way has ended: there may be something new. */
  trigger(): void {
    this.#told = true
    if (this.#reading === undefined && !this.#failing) this.#schedule(0)
  }

  /** Resolves after a read that has not begun yet; for one who has just come. */
  async nextRead(): Promise<void> {
    const done = new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
    this.trigger()
    await done
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#reading
    for (const done of this.#waiting) done()
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#closed || !(this.#wanted() || this.#waiting.length > 0)) return
    const rest = Math.max(ms, this.#restUntil - performance.now())
    this.#timer = setTimeout(() => this.#begin(), rest)
  }

  #begin(): void {
    if (this.#reading !== undefined || this.#closed) return
    this.#told = false
    this.#reading = this.#readOnce()
  }

  async #readOnce(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    const startedAt = performance.now()
    try {
      await this.#read()
      this.#failing = false
      for (const done of waiting) done()
    } catch (error) {
      if (!this.#failing) this.#logger.warn({ err: error }, 'feed_read_failed')
      this.#failing = true
      this.#waiting.push(...waiting)
    }
    const now = performance.now()
    this.#restUntil = now + (now - startedAt) * this.#restPerRead
    this.#reading = undefined
    this.#schedule(this.#failing ? retryMs : this.#told ? 0 : this.#pollMs)
  }
}
