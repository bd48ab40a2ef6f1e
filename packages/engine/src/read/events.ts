import type { Level } from '../attempt/emit.ts'
import { checkInteger } from '../check.ts'
import type { Db } from '../database/database.ts'
import { raw, sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import type { Json } from '../json.ts'
import { descendantsOf } from './descendants.ts'
import { withinBytes } from '../database/within-bytes.ts'

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

export interface EventPageOptions extends Omit<EventsOptions, 'descendants'> {
  /** How much the events of a page may take together, as JSON. One is returned however large it is. */
  maxBytes: number
}

export interface EventPage {
  events: JobEvent[]
  /** True when there are more behind the last one. */
  more: boolean
}

export const eventLimits = { default: 1000, max: 10_000 } as const

/** The events of a job, oldest first. Empty where there is no such job. */
export async function listEvents(db: Db, jobId: string, options: EventsOptions): Promise<JobEvent[]> {
  const { t } = db
  const after = checkAfter(options.after)
  const limit = checkLimit(options.limit)
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

/** A page of the events of a job, oldest first, bounded in number and in bytes. */
export async function listEventPage(db: Db, jobId: string, options: EventPageOptions): Promise<EventPage> {
  const { t } = db
  const limit = checkLimit(options.limit)
  const columns = raw('id, job_id, attempt_id, ts, level, event, message, fields')
  const rows = await db.query<EventRow & { listed: number }>(
    'events.page',
    withinBytes({
      rows: sql`select ${columns}, coalesce(pg_column_size(fields), 0) as stored_bytes from ${t.jobEvents}
                 where job_id = ${jobId} and id > ${checkAfter(options.after)}::bigint order by id limit ${limit + 1}`,
      columns,
      writtenBytes: sql`coalesce(octet_length(fields::text), 0) + coalesce(octet_length(message), 0) + 250`,
      order: raw('id'),
      maxBytes: options.maxBytes,
    }),
  )
  const events = rows.slice(0, limit).map(eventFromRow)
  return { events, more: (rows[0]?.listed ?? 0) > events.length }
}

function checkAfter(after = '0'): string {
  if (/^\d{1,18}$/.test(after)) return after
  throw new FencepostError('id_invalid', `${JSON.stringify(after)} is not an event id: give one that was listed.`)
}

function checkLimit(limit: number | undefined): number {
  return checkInteger(limit ?? eventLimits.default, 'limit', 1, eventLimits.max)
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
