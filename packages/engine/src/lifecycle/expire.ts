import type { Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import type { Relations } from '../database/relations.ts'
import { sql, type Sql } from '../database/sql.ts'
import { finishEnded, freeEnded, rememberStart } from './finish.ts'
import { isOverdue } from './overdue.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'

/*
 * expire: a running attempt whose lease has passed → pending while attempts are left, else failed.
 *
 * Both are one statement that locks what it reads and changes it, so a completion that lands first is waited out or
 * skipped, never overwritten. A row that somebody holds is left for the next sweep: it is being settled, or its handler
 * has a transaction open under its fence.
 */

export interface ExpiredRow {
  job_id: string
  queue: string
  slot_key: string | null
}

const expiredEvents = sql`
  select job_id, attempt_id, 1 as nth, 'warning' as level, 'job.expired' as event, 'The worker fell silent' as message,
         jsonb_build_object('worker', locked_by, 'lease_until', lease_until, 'attempt', attempts) as fields
    from ended`

/**
 * The CTE `turn`: whether this statement is the sweep's turn. The advisory lock lasts as long as the statement, because
 * that is its transaction. Nobody can keep it: Postgres ends the statement whether or not its client is still there.
 */
export function turnOf({ schema }: Pick<Relations, 'schema'>): Sql {
  return sql`turn as materialized (
      select pg_try_advisory_xact_lock(hashtext(${`fencepost.sweep.${schema}`})) as mine)`
}

/** Puts one batch of attempts whose lease has passed back to pending, those with the oldest leases first. */
export async function expireToPending(db: Db, batch: number): Promise<ExpiredRow[]> {
  const { t } = db
  return db.query<ExpiredRow>(
    'sweep.expire',
    sql`
    with ${turnOf(t)},
    ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where status = 'running' and lease_until <= ${t.now} and attempts < max_attempts
         and (${isOverdue}) is not true and (select mine from turn)
       order by lease_until limit ${batch}
         for update skip locked
    ),
    ${requeueEnded(db, { runAfter: t.now, attempts: sql`attempts` })},
    ${letGoOfEnded(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, level, event, message, fields from (${expiredEvents}) events
    )
    select job_id, queue, slot_key from ended`,
  )
}

/** Fails one batch of attempts whose lease has passed and that were their job's last. */
export async function expireToFailed(db: Db, batch: number): Promise<ExpiredRow[]> {
  const { t } = db
  return db.query<ExpiredRow>(
    'sweep.fail',
    sql`
    with ${turnOf(t)},
    ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where status = 'running' and lease_until <= ${t.now} and attempts >= max_attempts
         and (${isOverdue}) is not true and (select mine from turn)
       order by lease_until limit ${batch}
         for update skip locked
    ),
    ${finishEnded(db, {
      status: sql`'failed'`,
      error: sql`'The worker ' || locked_by || ' fell silent, and no attempt is left'`,
      errorCode: sql`'lease_expired'`,
      attemptId: sql`null::uuid`,
    })},
    ${freeEnded(db)},
    ${rememberStart(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, level, event, message, fields
        from (${expiredEvents}
              union all
              select job_id, attempt_id, 2, 'error', 'job.failed', 'No attempt is left',
                     jsonb_build_object('error_code', 'lease_expired', 'attempt', attempts)
                from ended) events
       order by job_id, nth
    )
    select job_id, queue, slot_key from ended`,
  )
}
