import type { Logger } from '../logger.ts'

/** Sweeps, unless any process has within this time; undefined when another is, or was, at it. */
type Sweep = (unlessWithinMs: number) => Promise<unknown>

/** A sweep that began this share of the interval ago is fresh enough. */
const freshShare = 0.9
/** How many intervals to leave the sweep to others at most, once they have been seen to do it. */
const maxIntervals = 16

/**
 * Sweeps every `sweepMs`, for all processes: of many workers one does, and the others look less and less often whether
 * it still does. One that hears of leases that have passed sweeps at once, and goes on if nobody else does.
 */
export class Sweeper {
  readonly #run: Sweep
  readonly #sweepMs: number
  readonly #logger: Logger
  #timer: NodeJS.Timeout | undefined
  #intervals = 1
  #sweeping = false
  #stopped = false

  constructor(run: Sweep, sweepMs: number, logger: Logger) {
    this.#run = run
    this.#sweepMs = sweepMs
    this.#logger = logger
  }

  /** Sweeps at once: there may have been no worker for a while. */
  start(): void {
    void this.#sweep(this.#sweepMs * freshShare)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  /** Leases have passed. */
  async now(): Promise<void> {
    await this.#sweep(0)
  }

  #schedule(): void {
    if (this.#stopped) return
    clearTimeout(this.#timer)
    const delayMs = this.#sweepMs * this.#intervals
    // Those that wait for longer than one interval spread out; the one that sweeps keeps its pace.
    const spread = this.#intervals === 1 ? 1 : 0.75 + Math.random() / 2
    this.#timer = setTimeout(() => void this.#sweep(this.#sweepMs * freshShare), delayMs * spread)
  }

  async #sweep(unlessWithinMs: number): Promise<void> {
    if (this.#sweeping || this.#stopped) return
    this.#sweeping = true
    try {
      const swept = await this.#run(Math.floor(unlessWithinMs))
      this.#intervals = swept === undefined ? Math.min(this.#intervals * 2, maxIntervals) : 1
    } catch (error) {
      this.#intervals = 1
      this.#logger.warn({ err: error }, 'sweep_failed')
    } finally {
      this.#sweeping = false
      this.#schedule()
    }
  }
}
