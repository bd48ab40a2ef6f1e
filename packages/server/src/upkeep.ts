import type { Engine, Logger } from '@fencepost/engine'
import { forgetOldKeys } from './jobs/idempotency.ts'

/** A sweep that any process began this share of the interval ago is fresh enough. */
const freshShare = 0.9

/** What a server does by itself: sweeps, submits the jobs of schedules, and removes what is past its time. */
export class Upkeep {
  readonly #logger: Logger
  readonly #timers: NodeJS.Timeout[]
  readonly #running = new Set<Promise<void>>()

  constructor(engine: Engine, options: { sweepMs: number; retainMs: number; logger: Logger }) {
    this.#logger = options.logger
    this.#timers = [
      this.#every(options.sweepMs, 'sweep_failed', async () => {
        await engine.sweep({ unlessWithinMs: Math.floor(options.sweepMs * freshShare) })
      }),
      // So that schedules go on where workers are only started for jobs that are there.
      this.#every(options.sweepMs, 'schedules_failed', async () => {
        await engine.schedules.submitDue()
      }),
      // Acts whose process has gone away go on here.
      this.#every(options.sweepMs, 'bulk_acts_failed', () => engine.bulkActs.resume()),
      this.#every(options.retainMs, 'retain_failed', async () => {
        await engine.retain()
        await forgetOldKeys(engine.database)
      }),
    ]
  }

  /** Begins nothing more, and waits for what has begun. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    await Promise.all(this.#running)
  }

  #every(ms: number, failed: string, work: () => Promise<void>): NodeJS.Timeout {
    let busy = false
    return setInterval(() => {
      if (busy) return
      busy = true
      const run = work()
        .catch((error: unknown) => this.#logger.warn({ err: error }, failed))
        .finally(() => {
          busy = false
          this.#running.delete(run)
        })
      this.#running.add(run)
    }, ms)
  }
}
