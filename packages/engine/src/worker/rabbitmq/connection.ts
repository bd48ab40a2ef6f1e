import type { Socket } from 'node:net'
import type { ChannelModel } from 'amqplib'
import type { Logger } from '../../logger.ts'
import type { Driver } from './driver.ts'

const firstDelayMs = 100
const maxDelayMs = 10_000
const closeMs = 1_000

export interface ConnectionOptions {
  name: string
  logger: Logger
  /** Makes the channels, every time it has been connected. What it throws ends this connection. */
  onOpen: (model: ChannelModel) => Promise<void>
  onLost: () => void
}

/** One connection to a broker, made anew, after a growing delay, whenever it breaks. */
export class Connection {
  readonly #driver: Driver
  readonly #options: ConnectionOptions
  #model: ChannelModel | undefined
  #connecting: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #delayMs = firstDelayMs
  #stopped = false

  constructor(driver: Driver, options: ConnectionOptions) {
    this.#driver = driver
    this.#options = options
  }

  /** Begins to connect, if that has not begun; resolves when an attempt that is under way has ended. Never throws. */
  async start(): Promise<void> {
    if (this.#stopped || this.#model !== undefined || this.#timer !== undefined) return
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined
    })
    await this.#connecting
  }

  /** Gives this connection up for another one. */
  breakOff(error: Error): void {
    this.#lost(this.#model, error)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    const model = this.#model
    this.#model = undefined
    if (model !== undefined) await close(model)
  }

  async #connect(): Promise<void> {
    let model: ChannelModel | undefined
    try {
      model = await this.#driver.connect(this.#options.name)
      if (this.#stopped) return await close(model)
      this.#model = model
      model.on('error', (error) => this.#lost(model, error))
      model.on('close', (error) => this.#lost(model, error))
      await this.#options.onOpen(model)
      this.#delayMs = firstDelayMs
    } catch (error) {
      if (model === undefined) this.#again(error)
      else this.#lost(model, error)
    }
  }

  #lost(model: ChannelModel | undefined, error: unknown): void {
    if (model === undefined || model !== this.#model) return // it is known already
    this.#model = undefined
    void close(model)
    this.#options.onLost()
    this.#again(error)
  }

  #again(error: unknown): void {
    if (this.#stopped) return
    this.#options.logger.warn({ err: error, delay_ms: this.#delayMs }, 'rabbitmq_connection_lost')
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        void this.start()
      },
      this.#delayMs * (0.5 + Math.random()),
    )
    this.#delayMs = Math.min(maxDelayMs, this.#delayMs * 2)
  }
}

/** Says goodbye, and hangs up if there is no answer. */
async function close(model: ChannelModel): Promise<void> {
  const { stream } = model.connection as unknown as { stream: Socket } // amqplib has no other way to hang up
  const timer = setTimeout(() => stream.destroy(new Error('the broker did not answer')), closeMs)
  // Not its promise: that is never settled when the connection breaks on the way.
  model.close().catch(() => {})
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve))
  clearTimeout(timer)
}
