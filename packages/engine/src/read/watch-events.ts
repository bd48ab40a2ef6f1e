import type { Context } from '../context.ts'
import { sql } from '../database/sql.ts'
import { channelOf, type Notice } from '../wake.ts'
import { ListenWakeUp } from '../worker/listen.ts'

const askEveryMs = 10_000
const askForMs = 30_000

/**
 * Calls back whenever events may have been written, over one connection that listens; resolves with what ends it.
 * Workers and submitters announce what they have written after it was committed, and only while they are asked to, as
 * this does. Not everybody hears the question, and a notice may be lost: whoever views events also looks by himself.
 */
export async function watchEvents(context: Context, onEvents: () => void): Promise<() => Promise<void>> {
  const { database, url, logger, wake } = context
  const { schema } = database.t
  const notice = JSON.stringify({ kind: 'watch', ms: askForMs } satisfies Notice)
  const ask = async () => {
    wake.watched(askForMs)
    try {
      await database.query('watch', sql`select pg_notify(${channelOf(schema)}, ${notice})`)
    } catch (error) {
      logger.warn({ err: error }, 'wake_up_not_sent')
    }
  }
  const connection = new ListenWakeUp(url, schema, logger)
  await connection.start([], 0, { onWake() {}, onJob: async () => 'declined', onCancel() {}, onEvents })
  await ask()
  const timer = setInterval(() => void ask(), askEveryMs)
  return async () => {
    clearInterval(timer)
    await connection.stop()
  }
}
