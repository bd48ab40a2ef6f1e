import type { Engine, Logger } from '@fencepost/engine'
import type { Catalogs } from '../catalogs/catalogs.ts'
import { refreshInventory } from './refresh.ts'

/** A list this share of the interval old is fresh enough, whichever process made it. */
const freshShare = 0.9

/** Lists the catalogs again at regular times, and at the start if no other process has lately. */
export class Refresher {
  readonly #timer: NodeJS.Timeout
  readonly #refresh: () => Promise<unknown>
  #running: Promise<unknown> | undefined

  constructor(engine: Engine, catalogs: Catalogs, { everyMs, logger }: { everyMs: number; logger: Logger }) {
    const options = { unlessWithinMs: Math.floor(everyMs * freshShare), acceptsEmpty: false, logger }
    this.#refresh = () => refreshInventory(engine.database, catalogs, options)
    this.#timer = setInterval(() => this.#start(logger), everyMs)
    this.#start(logger)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  #start(logger: Logger): void {
    this.#running ??= this.#refresh()
      .catch((error: unknown) => logger.warn({ err: error }, 'inventory_not_refreshed'))
      .finally(() => {
        this.#running = undefined
      })
  }
}
