import type { Logger } from '../../logger.ts'
import { HandlerProcess } from './handler-process.ts'
import type { HandlerSettings } from './messages.ts'

/** A process that has had nothing to do for this long is ended. */
const idleMs = 60_000

/** Handler processes, each reused for one attempt after another, never more than `size` of them. */
export class HandlerPool {
  readonly #settings: HandlerSettings
  readonly #size: number
  readonly #logger: Logger
  readonly #all = new Set<HandlerProcess>()
  readonly #idle = new Map<HandlerProcess, NodeJS.Timeout>()
  readonly #onExit = () => {
    for (const one of this.#all) one.killNow()
  }

  constructor(settings: HandlerSettings, size: number, logger: Logger) {
    this.#settings = settings
    this.#size = size
    this.#logger = logger
    process.on('exit', this.#onExit)
  }

  /** One that runs nothing and has this memory limit: started if there is none. Throws when it cannot be started. */
  async take(maxMemoryMb: number | undefined): Promise<HandlerProcess> {
    for (const one of this.#idle.keys()) {
      if (one.maxMemoryMb === maxMemoryMb && this.#leaveIdle(one)) return one
    }
    // All that could be had are of another limit.
    const [other] = this.#idle.keys()
    if (other !== undefined && this.#all.size >= this.#size) {
      this.#leaveIdle(other)
      await other.end()
    }
    return HandlerProcess.start(this.#settings, maxMemoryMb, this.#logger, (starting) => {
      this.#all.add(starting)
      void starting.gone.then(() => {
        this.#leaveIdle(starting)
        this.#all.delete(starting)
      })
    })
  }

  giveBack(one: HandlerProcess): void {
    if (one.isGone) return
    const end = () => {
      if (this.#leaveIdle(one)) void one.end()
    }
    this.#idle.set(one, setTimeout(end, idleMs).unref())
  }

  /** Ends all of them, whatever they are doing. */
  async close(): Promise<void> {
    const idle = [...this.#idle.keys()].filter((one) => this.#leaveIdle(one))
    const busy = [...this.#all].filter((one) => !idle.includes(one))
    await Promise.all([...idle.map((one) => one.end()), ...busy.map((one) => one.kill())])
    process.off('exit', this.#onExit)
  }

  #leaveIdle(one: HandlerProcess): boolean {
    clearTimeout(this.#idle.get(one))
    return this.#idle.delete(one)
  }
}
