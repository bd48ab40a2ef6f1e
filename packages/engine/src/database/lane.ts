import pg from 'pg'
import { FencepostError } from '../errors.ts'
import { failure, isConnectionLost, isPlanStale } from './failure.ts'
import { hangUp } from './hang-up.ts'

/**
 * One connection, made when it is first needed, and anew after it has broken. Statements go out at once, without waiting
 * for the answers to those before them, so that Postgres goes from one to the next.
 *
 * A connection of the pool cannot do that: in this mode it refuses `COPY` and cursors, which handlers may want of it.
 */
export class Lane {
  readonly #config: pg.ClientConfig
  readonly #setUp: (client: pg.Client) => Promise<void>
  readonly #onError: (error: Error) => void
  #current: Promise<pg.Client> | undefined
  #closed = false

  constructor(config: pg.ClientConfig, setUp: (client: pg.Client) => Promise<void>, onError: (error: Error) => void) {
    this.#config = config
    this.#setUp = setUp
    this.#onError = onError
  }

  /** Works with the connection, beside others who do: their statements are answered in the order they are sent. */
  async use<T>(name: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
    if (this.#closed) throw new FencepostError('engine_closed', `${name}: the worker that sends this has stopped.`)
    const current = this.#current ?? this.#open()
    let client: pg.Client
    try {
      client = await current
    } catch (error) {
      this.#forget(current)
      throw failure(error, name, 'no')
    }
    try {
      return await work(client)
    } catch (error) {
      // Postgres says goodbye in answer to a statement, and hangs up a moment later: nobody may get this one meanwhile.
      // One that only reads does not hang up.
      if (isConnectionLost(error)) {
        this.#forget(current)
        void hangUp(client)
      } else if (isPlanStale(error)) {
        this.#forget(current)
        void client.end() // once everything that is under way has been answered
      }
      throw error
    }
  }

  /** Waits for what is under way, then closes the connection. */
  async close(): Promise<void> {
    this.#closed = true
    const current = this.#current
    if (current === undefined) return
    this.#forget(current)
    const client = await current.catch(() => undefined)
    if (client !== undefined) await hangUp(client)
  }

  #open(): Promise<pg.Client> {
    const opened = this.#connect(() => this.#forget(opened))
    this.#current = opened
    return opened
  }

  async #connect(onEnd: () => void): Promise<pg.Client> {
    const client = new pg.Client({ ...this.#config, pipeline: true })
    client.on('error', this.#onError) // whoever waits for an answer is told, too
    client.on('end', onEnd)
    try {
      await client.connect()
      await this.#setUp(client)
    } catch (error) {
      void hangUp(client)
      throw error
    }
    return client
  }

  #forget(current: Promise<pg.Client>): void {
    if (this.#current === current) this.#current = undefined
  }
}
