import type { Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import type { Relations } from '../database/relations.ts'
import { raw, sql, type Sql } from '../database/sql.ts'
import { turnOf, type ExpiredRow } from './expire.ts'
import { finishEnded, freeEnded } from './finish.ts'

/*
 * start by: pending → failed for a job that was to start by some time and did not. One that has started once is started,
 * whatever becomes of its attempts. No claim takes such a job after that time; the sweep fails it.
 */

/** False for a job that should have started by now. */
export function mayStart(t: Relations): Sql {
  return sql`(job.start_by is null or job.start_by > ${t.now} or job.started_at is not null)`
}

/** The jobs that should have started by now, in the words of their index. */
export function startPassed(t: Relations): Sql {
  return sql`status = 'pending' and start_by is not null and started_at is null and start_by <= ${t.now}`
}

/** Fails one batch of jobs that should have started by now, those with the oldest times first. */
export async function expireUnstarted(db: Db, batch: number): Promise<ExpiredRow[]> {
  const { t } = db
  return db.query<ExpiredRow>(
    'sweep.unstarted',
    sql`
    with ${turnOf(t)},
    ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where ${startPassed(t)} and (select mine from turn)
       order by start_by limit ${batch}
         for update skip locked
    ),
    ${finishEnded(db, {
      status: sql`'failed'`,
      error: sql`'It was to start by ' || start_by || ' and did not'`,
      errorCode: sql`'expired_unstarted'`,
      attemptId: raw('null::uuid'),
    })},
    ${freeEnded(db)},
    told as (
      insert into ${t.storedEvents} (job_id, ts, level, event, message, fields)
      select job_id, ${t.now}, level, event, message, fields
        from (select job_id, 1 as nth, 'warning' as level, 'job.expired_unstarted' as event, null as message,
                     jsonb_build_object('start_by', start_by) as fields
                from ended
              union all
              select job_id, 2, 'error', 'job.failed', 'It was not started in time',
                     jsonb_build_object('error_code', 'expired_unstarted', 'attempt', attempts)
                from ended) events
       order by job_id, nth
    )
    select job_id, queue, slot_key from ended`,
  )
}
