import { checkInteger } from '../check.ts'
import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import type { Json } from '../json.ts'
import { withinBytes } from '../database/within-bytes.ts'
import { nextTime, type Rule } from './times.ts'

/** What to do about due times that nobody was there for: submit once for all of them, for each, or for none. */
export type CatchUp = 'once' | 'all' | 'skip'

/**
 * What to do at a due time while the job of the one before has not ended: submit all the same, leave it out, or submit a
 * job that waits for the other to end.
 */
export type Overlap = 'allow' | 'skip' | 'queue'

/** What came of a due time. Only `submitted` made a job. */
export type ScheduleOutcome = 'submitted' | 'overlapped' | 'missed' | 'locked' | 'duplicate' | 'invalid'

/** A job that is submitted at set times. Times are RFC 3339. */
export interface Schedule {
  readonly name: string
  readonly operation: string
  readonly payload: Json
  readonly queue: string | undefined
  readonly priority: number
  readonly maxAttempts: number | undefined
  readonly rule: Rule
  readonly catchUp: CatchUp
  readonly overlap: Overlap
  /** The next due times, the first of which may have passed; none while it is paused. */
  readonly nextTimes: readonly string[]
  readonly pausedAt: string | undefined
  readonly lastDueAt: string | undefined
  readonly lastOutcome: ScheduleOutcome | undefined
  readonly lastJobId: string | undefined
  readonly lastError: string | undefined
  readonly createdAt: string
  readonly updatedAt: string
  readonly updatedBy: string | undefined
}

export interface ScheduleRow {
  name: string
  operation: string
  payload: Json
  queue: string | null
  priority: number
  max_attempts: number | null
  cron: string | null
  time_zone: string | null
  every_ms: string | null
  catch_up: CatchUp
  overlap: Overlap
  next_ms: number
  paused_at: string | null
  last_due_at: string | null
  last_outcome: ScheduleOutcome | null
  last_job_id: string | null
  last_error: string | null
  created_at: string
  updated_at: string
  updated_by: string | null
}

export const scheduleColumns: Sql = sql`
  name, operation, payload, queue, priority, max_attempts, cron, time_zone, every_ms, catch_up, overlap,
  (extract(epoch from next_at) * 1000)::double precision as next_ms, paused_at, last_due_at, last_outcome, last_job_id,
  last_error, created_at, updated_at, updated_by`

const shownTimes = 5

/** All schedules by name, or the one of that name. */
export async function listSchedules(db: Db, name?: string): Promise<Schedule[]> {
  const { t } = db
  const rows = await db.query<ScheduleRow>(
    'schedules.list',
    sql`select ${scheduleColumns} from ${t.schedules}
         where ${name ?? null}::text is null or name = ${name ?? null} order by name`,
  )
  return rows.map(scheduleFromRow)
}

export interface SchedulePageOptions {
  /** Only schedules behind this name. */
  after?: string | undefined
  /** 100 if left out. */
  limit?: number | undefined
  /** How large their payloads may be together, as JSON; one is listed however large it is. */
  maxBytes: number
}

/** Some of the schedules, by name. */
export interface SchedulePage {
  schedules: Schedule[]
  /** True when there are more behind the last one. */
  more: boolean
}

const pageLimits = { default: 100, max: 1000 }

export async function listSchedulePage(db: Db, options: SchedulePageOptions): Promise<SchedulePage> {
  const limit = checkInteger(options.limit ?? pageLimits.default, 'limit', 1, pageLimits.max)
  // One more than is wanted tells whether there are more.
  const rows = sql`
    select *, pg_column_size(payload) as stored_bytes from ${db.t.schedules}
     where name > ${options.after ?? ''} order by name limit ${limit + 1}`
  const found = await db.query<ScheduleRow & { listed: number }>(
    'schedules.page',
    withinBytes({
      rows,
      columns: scheduleColumns,
      writtenBytes: sql`octet_length(payload::text)`,
      order: sql`name`,
      maxBytes: options.maxBytes,
    }),
  )
  const schedules = found.slice(0, limit).map(scheduleFromRow)
  return { schedules, more: (found[0]?.listed ?? 0) > schedules.length }
}

export function scheduleFromRow(row: ScheduleRow): Schedule {
  const rule = ruleOf(row)
  return {
    name: row.name,
    operation: row.operation,
    payload: row.payload,
    queue: row.queue ?? undefined,
    priority: row.priority,
    maxAttempts: row.max_attempts ?? undefined,
    rule,
    catchUp: row.catch_up,
    overlap: row.overlap,
    nextTimes: row.paused_at === null ? timesFrom(rule, row.next_ms) : [],
    pausedAt: row.paused_at ?? undefined,
    lastDueAt: row.last_due_at ?? undefined,
    lastOutcome: row.last_outcome ?? undefined,
    lastJobId: row.last_job_id ?? undefined,
    lastError: row.last_error ?? undefined,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    updatedBy: row.updated_by ?? undefined,
  }
}

export function ruleOf({ cron, time_zone: timeZone, every_ms: everyMs }: ScheduleRow): Rule {
  return cron === null ? { everyMs: Number(everyMs) } : { cron, timeZone: timeZone ?? 'UTC' }
}

function timesFrom(rule: Rule, firstMs: number): string[] {
  const times = [firstMs]
  while (times.length < shownTimes) times.push(nextTime(rule, times.at(-1) as number))
  return times.map((ms) => new Date(ms).toISOString())
}
