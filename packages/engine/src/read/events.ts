import type { Level } from '../attempt/emit.ts'
import { checkInteger } from '../check.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import type { Json } from '../json.ts'
import { descendantsOf } from './descendants.ts'

/** A line in a job's history. */
export interface JobEvent {
  /** Ascending within a job; opaque otherwise. */
  id: string
  jobId: string
  attemptId: string | undefined
  ts: string
  level: Level
  event: string
  message: string | undefined
  fields: Json
}

/** An event as the relation has it. */
export interface EventRow {
  id: bigint
  job_id: string
  attempt_id: string | null
  ts: string
  level: Level
  event: string
  message: string | null
  fields: Json
}

export interface EventsOptions {
  /** Only events after this one. */
  after?: string
  limit?: number
  /** Also the events of everything that descends from the job, by time. Not together with `after`. */
  descendants?: boolean
}

export const eventLimits = { default: 1000, max: 10_000 } as const

/** The events of a job, oldest first. Empty where there is no such job. */
export async function listEvents(db: Db, jobId: string, options: EventsOptions): Promise<JobEvent[]> {
  const { t } = db
  const after = options.after ?? '0'
  if (!/^\d{1,18}$/.test(after)) {
    throw new FencepostError('id_invalid', `${JSON.stringify(after)} is not an event id: give one that was listed.`)
  }
  const limit = checkInteger(options.limit ?? eventLimits.default, 'limit', 1, eventLimits.max)
  if (options.descendants && options.after !== undefined) {
    // An event of one job may become visible after one of another job that has a greater id: it would be passed over.
    throw new FencepostError('options_invalid', 'Give after or descendants: ids are in order within one job only.')
  }
  const which = options.descendants
    ? sql`(job_id = ${jobId} or job_id in (${descendantsOf(db, jobId)})) order by ts, id`
    : sql`job_id = ${jobId} and id > ${after}::bigint order by id`
  const rows = await db.query<EventRow>(
    'events',
    sql`select id, job_id, attempt_id, ts, level, event, message, fields from ${t.jobEvents}
         where ${which} limit ${limit}`,
  )
  return rows.map(eventFromRow)
}

/** The one place where columns become properties. */
export function eventFromRow(row: EventRow): JobEvent {
  return {
    id: String(row.id),
    jobId: row.job_id,
    attemptId: row.attempt_id ?? undefined,
    ts: row.ts,
    level: row.level,
    event: row.event,
    message: row.message ?? undefined,
    fields: row.fields,
  }
}
