import type { Database, Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { Logger } from '../logger.ts'
import { channelOf, type Announcements, type Notice, type Transport } from '../wake.ts'
import { ListenWakeUp } from './listen.ts'

const maxNoticesPerStatement = 500

/** Wake-ups over Postgres itself: NOTIFY by the pool, or behind a job submitted alone; LISTEN by connections of its own. */
export function postgresTransport(database: Database, url: string, logger: Logger): Transport {
  const { schema } = database.t
  const lane = database.lane()
  const notify = async (db: Db, notices: readonly Notice[]) => {
    const payloads = notices.map((notice) => JSON.stringify(notice))
    await db.query(
      'wake',
      // Nobody waits for the disk: a wake-up that is lost in a crash of Postgres costs time, never a job.
      sql`with hurry as materialized (select set_config('synchronous_commit', 'off', true))
          select pg_notify(${channelOf(schema)}, notice) from hurry, unnest(${payloads}::text[]) notice`,
    )
  }
  const notSent = (error: unknown) => logger.warn({ err: error }, 'wake_up_not_sent')
  return {
    namesJobs: false,
    behind: { db: lane, announce: (notice) => void notify(lane, [notice]).catch(notSent) },
    send: async ({ notices }: Announcements) => {
      for (let from = 0; from < notices.length; from += maxNoticesPerStatement) {
        try {
          await notify(database, notices.slice(from, from + maxNoticesPerStatement))
        } catch (error) {
          notSent(error)
        }
      }
    },
    listen: () => new ListenWakeUp(url, schema, logger),
    close: () => lane.close(),
  }
}
