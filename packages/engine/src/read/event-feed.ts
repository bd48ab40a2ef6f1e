import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import { eventFromRow, type EventRow, type JobEvent } from './events.ts'

/** What one read saw of the database. */
export interface DatabaseState {
  /** The first transaction that had not ended. */
  xmin: bigint
  /** The first transaction that had not begun. */
  xmax: bigint
  /** The last event id that was drawn. */
  lastId: bigint
  /** The time by Postgres's clock. */
  ts: string
}

/** Events that were found, in order of their ids, and the state of the database that they were found in. */
export interface FoundEvents {
  snapshot: DatabaseState
  events: JobEvent[]
}

interface StateRow {
  xmin: string
  xmax: string
  last_id: bigint
  now: string
}
/** Without events there is still one row, which has the state alone. */
type FoundRow = StateRow & (EventRow | { id: null })

/** Where transitions of all jobs are read from. */
export interface Lately {
  past: bigint
  /** By Postgres's clock; `secondsAgo` where there is no such time yet. */
  since: string | undefined
  secondsAgo: number
}

/** For those who follow events as they are written. Which ids are settled is for them to work out from the state. */
export class EventFeed {
  readonly #db: Db

  constructor(db: Db) {
    this.#db = db
  }

  /** Returns the events of these jobs past an id, without those that were seen. */
  async ofJobs(jobIds: readonly string[], past: bigint, seen: readonly string[]): Promise<FoundEvents> {
    return readJobs(this.#db, jobIds, past, seen)
  }

  /** Returns the ids of the events of these jobs past an id, with the job of each. */
  async idsOfJobs(jobIds: readonly string[], past: bigint): Promise<{ jobId: string; id: string }[]> {
    return readJobEventIds(this.#db, jobIds, past)
  }

  /** Returns the transitions of all jobs past an id, without those that were seen. */
  async lately(from: Lately, seen: readonly string[]): Promise<FoundEvents> {
    return readLately(this.#db, from, seen)
  }

  /** Returns the state of the database alone. */
  async state(): Promise<DatabaseState> {
    return readSnapshot(this.#db)
  }

  /** Counts the events of a job up to an id. */
  async countUpTo(jobId: string, eventId: string): Promise<number> {
    return countUpTo(this.#db, jobId, eventId)
  }
}

/** The events of these jobs past an id, but for those that were seen. */
async function readJobs(
  db: Db,
  jobIds: readonly string[],
  past: bigint,
  seen: readonly string[],
): Promise<FoundEvents> {
  const { t } = db
  const events = sql`
    select e.id, e.job_id, e.attempt_id, e.ts, e.level, e.event, e.message, e.fields
      from ${t.jobEvents} e where e.job_id = any(${jobIds}::uuid[]) and e.id > ${String(past)}::bigint`
  return read(db, 'events.jobs', events, seen)
}

/** The ids of the events of these jobs past an id, by job. */
async function readJobEventIds(
  db: Db,
  jobIds: readonly string[],
  past: bigint,
): Promise<{ jobId: string; id: string }[]> {
  const { t } = db
  const rows = await db.query<{ id: bigint; job_id: string }>(
    'events.ids',
    sql`select e.id, e.job_id from ${t.jobEvents} e
         where e.job_id = any(${jobIds}::uuid[]) and e.id > ${String(past)}::bigint`,
  )
  return rows.map((row) => ({ jobId: row.job_id, id: String(row.id) }))
}

/**
 * The transitions of all jobs past an id. What a row of a job tells (submitted, started, completed) is found by the
 * time at which it was written, through indexes that are there: ids of jobs hold the time of their submission, running
 * jobs are few, and finished ones are summarised by their end.
 */
async function readLately(db: Db, { past, since, secondsAgo }: Lately, seen: readonly string[]): Promise<FoundEvents> {
  const { t } = db
  const from = since === undefined ? sql`${t.now} - ${secondsAgo} * interval '1 second'` : sql`${since}::timestamptz`
  // A little more: a statement reads the clock when it begins, and draws its ids after having waited for its rows.
  const begin = sql`(${from} - interval '5 seconds')`
  const floor = sql`${String(past)}::bigint`
  const submitted = sql`case when submitted_by is not null then jsonb_build_object('by', submitted_by) end`
  const started = sql`jsonb_build_object('worker', locked_by, 'attempt', attempts)`
  const events = sql`
    select id, job_id, attempt_id, ts, level, event, message, fields
      from ${t.storedEvents} where id > ${floor} and event like 'job.%'
    union all
    select submitted_event_id, job_id, null, submitted_at, 'info', 'job.submitted', null, ${submitted}
      from ${t.liveJobs} where job_id >= ${t.jobIdFloor}(${begin}) and submitted_event_id > ${floor}
    union all
    select started_event_id, job_id, attempt_id, locked_at, 'info', 'job.started', null, ${started}
      from ${t.liveJobs} where status = 'running' and lease_until is not null and started_event_id > ${floor}
    union all
    select derived.id, job_id, derived.attempt_id, derived.ts, 'info', derived.event, null, derived.fields
      from ${t.finishedJobs},
           lateral (values (submitted_event_id, null::uuid, submitted_at, 'job.submitted', ${submitted}),
                           (started_event_id, attempt_id, locked_at, 'job.started', ${started}),
                           (completed_event_id, attempt_id, completed_at, 'job.completed', null::jsonb))
             derived (id, attempt_id, ts, event, fields)
     where completed_at >= ${begin} and derived.id > ${floor}`
  return read(db, 'events.lately', events, seen)
}

// The snapshot and the events come from one statement: the floor rises only over what that statement has seen.
async function read(db: Db, name: string, events: Sql, seen: readonly string[]): Promise<FoundEvents> {
  const { t } = db
  const rows = await db.query<FoundRow>(
    name,
    sql`
    with state as (
      select pg_snapshot_xmin(s)::text as xmin, pg_snapshot_xmax(s)::text as xmax,
             (select last_value from ${t.eventIds}) as last_id, ${t.now} as now
        from pg_current_snapshot() s
    )
    select state.xmin, state.xmax, state.last_id, state.now, e.id, e.job_id, e.attempt_id, e.ts, e.level, e.event, e.message, e.fields
      from state
      left join (${events}) e on not exists (select from unnest(${seen}::bigint[]) had (id) where had.id = e.id)
     order by e.id`,
  )
  const [state] = rows
  if (state === undefined) throw new Error('the state of the database is always one row')
  return {
    snapshot: { xmin: BigInt(state.xmin), xmax: BigInt(state.xmax), lastId: state.last_id, ts: state.now },
    events: rows.flatMap((row) => (row.id === null ? [] : eventFromRow(row))),
  }
}

/** The state of the database alone. */
async function readSnapshot(db: Db): Promise<DatabaseState> {
  return (await readJobs(db, [], 0n, [])).snapshot
}

/** How many events of a job there are up to an id. */
async function countUpTo(db: Db, jobId: string, eventId: string): Promise<number> {
  const { t } = db
  const [row] = await db.query<{ count: bigint }>(
    'events.count',
    sql`select count(*) from ${t.jobEvents} where job_id = ${jobId} and id <= ${eventId}::bigint`,
  )
  return Number(row?.count ?? 0)
}
