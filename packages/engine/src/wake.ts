import type { Database } from './database/database.ts'
import { sql } from './database/sql.ts'
import type { Fence } from './lifecycle/outcome.ts'
import type { Logger } from './logger.ts'

/*
 * The wake-up: tells sleeping workers that there is work, after the commit and from another session.
 *
 * Never inside the submitting transaction: a transaction with a NOTIFY in it takes a lock on the whole database when it
 * commits, and concurrent submissions then wait for each other's disk writes. Wake-ups that come together are sent as
 * one. Losing one costs time, never a job: workers also look by themselves.
 */

/** What is sent on the channel, as JSON. */
export type Notice =
  | { kind: 'wake'; queue: string }
  /** The job was cancelled while this attempt ran: its worker aborts it at once. */
  | { kind: 'cancel'; job_id: string; attempt_id: string }

const maxNoticesPerStatement = 500

/** The channel of a schema; Postgres cuts channel names at 63 bytes, so the schema's length is limited too. */
export function channelOf(schema: string): string {
  return `${schema}_notices`
}

/** Collects notices for a few milliseconds and sends each distinct one once. */
export class Wake {
  readonly #database: Database
  readonly #logger: Logger
  readonly #delayMs: number
  readonly #waiting = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> = Promise.resolve()
  #closed = false

  constructor(database: Database, logger: Logger, delayMs: number) {
    this.#database = database
    this.#logger = logger
    this.#delayMs = delayMs
  }

  queues(queues: Iterable<string>): void {
    for (const queue of queues) this.#add({ kind: 'wake', queue })
  }

  cancelled(fences: readonly Fence[]): void {
    for (const { jobId, attemptId } of fences) this.#add({ kind: 'cancel', job_id: jobId, attempt_id: attemptId })
  }

  /** Sends what is waiting, now, and resolves when it has been sent. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const notices = [...this.#waiting]
    this.#waiting.clear()
    this.#sending = this.#sending.then(() => this.#send(notices))
    await this.#sending
  }

  /** Sends what is waiting, the last time. */
  async close(): Promise<void> {
    this.#closed = true
    await this.flush()
  }

  #add(notice: Notice): void {
    if (this.#closed) return
    this.#waiting.add(JSON.stringify(notice))
    this.#timer ??= setTimeout(() => void this.flush(), this.#delayMs)
  }

  async #send(notices: readonly string[]): Promise<void> {
    const channel = channelOf(this.#database.t.schema)
    for (let from = 0; from < notices.length; from += maxNoticesPerStatement) {
      const some = notices.slice(from, from + maxNoticesPerStatement)
      try {
        await this.#database.query(
          'wake',
          sql`select pg_notify(${channel}, notice) from unnest(${some}::text[]) notice`,
        )
      } catch (error) {
        this.#logger.warn({ err: error }, 'wake_up_not_sent')
      }
    }
  }
}
