import type { Engine, Logger } from '@fencepost/engine'

/** The one connection that listens, made for the first viewer and ended after the last. */
export class Listening {
  readonly #engine: Engine
  readonly #logger: Logger
  readonly #onNotice: () => void
  #holders = 0
  #connection: Promise<() => Promise<void>> | undefined

  constructor(engine: Engine, logger: Logger, onNotice: () => void) {
    this.#engine = engine
    this.#logger = logger
    this.#onNotice = onNotice
  }

  /** Listens until the answer is called, for every holder once. Without a connection viewers are served by polling. */
  hold(): () => void {
    this.#holders += 1
    this.#connection ??= this.#engine.watchEvents(this.#onNotice)
    return () => {
      this.#holders -= 1
      if (this.#holders === 0) void this.#end()
    }
  }

  async close(): Promise<void> {
    await this.#end()
  }

  async #end(): Promise<void> {
    const connection = this.#connection
    this.#connection = undefined
    try {
      await (
        await connection
      )?.()
    } catch (error) {
      this.#logger.warn({ err: error }, 'listening_not_ended')
    }
  }
}
