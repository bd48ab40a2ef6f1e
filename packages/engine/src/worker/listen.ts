import pg from 'pg'
import { keepAliveMs } from '../database/database.ts'
import { hangUp } from '../database/hang-up.ts'
import type { Logger } from '../logger.ts'
import { channelOf } from '../wake.ts'
import { atMost } from './at-most.ts'
import { parseNotice } from './notice.ts'
import type { WakeUp, WakeUpListener } from './wake-up.ts'

const firstDelayMs = 100
const maxDelayMs = 10_000
const connectTimeoutMs = 10_000
const patienceMs = 1_000

/** Wake-ups over Postgres itself: one connection that does nothing but listen, made anew whenever it breaks. */
export class ListenWakeUp implements WakeUp {
  readonly #url: string
  readonly #channel: string
  readonly #logger: Logger
  #client: pg.Client | undefined
  #stopped = false
  #delayMs = firstDelayMs
  #timer: NodeJS.Timeout | undefined

  constructor(url: string, schema: string, logger: Logger) {
    this.#url = url
    this.#channel = channelOf(schema)
    this.#logger = logger
  }

  /** Waits a little, so that no cancel is missed by a first job; a worker that cannot listen works all the same. */
  async start(queues: readonly string[], _concurrency: number, listener: WakeUpListener): Promise<void> {
    await atMost(patienceMs, this.#connect(new Set(queues), listener))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    if (this.#client !== undefined) await hangUp(this.#client)
  }

  async #connect(queues: ReadonlySet<string>, listener: WakeUpListener): Promise<void> {
    if (this.#stopped) return
    const client = new pg.Client({
      connectionString: this.#url,
      application_name: 'fencepost listen',
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveMs,
      connectionTimeoutMillis: connectTimeoutMs,
    })
    this.#client = client
    let over = false
    const lost = (error?: Error) => {
      if (over) return
      over = true
      client.removeAllListeners('notification')
      void hangUp(client)
      this.#again(error, queues, listener)
    }
    client.on('error', lost)
    client.on('end', () => lost())
    client.on('notification', ({ payload }) => this.#heard(payload, queues, listener))
    try {
      await client.connect()
      await client.query(`listen "${this.#channel}"`)
    } catch (error) {
      lost(error as Error)
      return
    }
    this.#delayMs = firstDelayMs
    // Whatever was announced while nobody listened: look once.
    for (const queue of queues) listener.onWake(queue)
    listener.onEvents?.()
  }

  #again(error: Error | undefined, queues: ReadonlySet<string>, listener: WakeUpListener): void {
    if (this.#stopped) return
    this.#logger.warn({ err: error, delay_ms: this.#delayMs }, 'listen_connection_lost')
    this.#timer = setTimeout(() => void this.#connect(queues, listener), this.#delayMs * (0.5 + Math.random()))
    this.#delayMs = Math.min(maxDelayMs, this.#delayMs * 2)
  }

  #heard(payload: string | undefined, queues: ReadonlySet<string>, listener: WakeUpListener): void {
    const notice = parseNotice(payload)
    if (notice?.kind === 'wake' && queues.has(notice.queue)) listener.onWake(notice.queue)
    if (notice?.kind === 'cancel') listener.onCancel({ jobId: notice.job_id, attemptId: notice.attempt_id })
    if (notice?.kind === 'watch') listener.onWatch?.(notice.ms)
    else if (notice !== undefined) listener.onEvents?.()
  }
}
