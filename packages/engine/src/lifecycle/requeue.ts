import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { sql, type Sql } from '../database/sql.ts'
import { leaveSlots, operationOf, rememberStart } from './finish.ts'

/** Puts `ended` back to pending with the fence cleared, as CTEs. The job keeps its lock: nobody else may slip in. */
export function requeueEnded(
  db: Pick<Db, 't'>,
  row: { runAfter: Sql; attempts: Sql; error?: Sql; errorCode?: Sql },
): Sql {
  return sql`${requeueOnly(db, row)},
    ${rememberStart(db)}`
}

/** The same for attempts whose start is kept elsewhere. */
export function requeueOnly(
  { t }: Pick<Db, 't'>,
  row: { runAfter: Sql; attempts: Sql; error?: Sql; errorCode?: Sql },
): Sql {
  return sql`
    requeued as (
      update ${t.liveJobs}
         set status = 'pending', attempt_id = null, lease_until = null, locked_by = null, locked_at = null,
             started_event_id = null, run_after = ${row.runAfter}, attempts = ${row.attempts},
             error = ${row.error ?? sql`error`}, error_code = ${row.errorCode ?? sql`error_code`}
       where job_id = any(array(select job_id from ended))
    )`
}

/** Marks the locks and slots of `ended` as nobody's at work, as CTEs. */
export function letGoOfEnded(db: Pick<Db, 't'>): Sql {
  const { t } = db
  return sql`
    unlocked as (
      update ${t.resourceLocks} set attempt_id = null, expires_at = null
       where lock_key = any(array(select lock_key from ended where lock_key is not null))
         and job_id = any(array(select job_id from ended))
         and attempt_id = any(array(select attempt_id from ended))
    ),
    ${leaveSlots(db)}`
}

/** What is set on a row of live_jobs that goes on to its next part: it is pending, with all its attempts to spend again. */
export function continuing(t: Relations, part: Sql): Sql {
  return sql`
    operation = ${operationOf} || '/' || ${part}, next_part = null, status = 'pending', attempts = 0,
    run_after = ${t.now}, attempt_id = null, lease_until = null, locked_by = null, locked_at = null,
    started_event_id = null, deferred_at = null, error = null, error_code = null`
}
