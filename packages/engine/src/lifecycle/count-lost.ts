import { liveJobColumns } from '../database/live-job-columns.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { Claimed } from './claim.ts'
import { finishEnded } from './finish.ts'
import { namedAttempts } from './retry-later.ts'

/*
 * A claim that does not wait for the disk can be lost in a crash of Postgres. The job is then pending again, with the
 * attempt not counted, and a handler that makes Postgres crash would be tried for ever. The worker that held the claim
 * learns of it when its report or renewal is refused, and has the attempt counted: it is spent.
 *
 * Whatever else ends an attempt writes its job.started into the events, names it in job.retry_later, or finishes the job.
 * So an attempt that is nowhere was lost. Counting it writes its job.started too, so that it is counted once. The row is
 * locked so that it passes a handler's transaction: a renewal that waited for one would let every other lease lapse.
 * Limit: one that runs again, in its last attempt, is not counted. That attempt was counted when it was claimed. Nor is one
 * of a job that has asked to come back later more often than job.retry_later names attempts.
 */

/** Counts those of these refused attempts whose claims were lost; fails the jobs that have no attempt left. */
export async function countLost(db: Db, refused: readonly Claimed[]): Promise<void> {
  // The claims of others wait for the disk.
  const quick = refused.filter(({ lockKey, slotKey, maxAttempts }) => !lockKey && !slotKey && maxAttempts > 1)
  if (quick.length === 0) return
  const { t } = db
  await db.query(
    'count_lost',
    sql`
    with lost as (
      select job.job_id, job.attempts, job.max_attempts, job.status, refused.attempt_id, refused.worker
        from unnest(${quick.map(({ jobId }) => jobId)}::uuid[], ${quick.map(({ attemptId }) => attemptId)}::uuid[],
                    ${quick.map(({ workerId }) => workerId)}::text[]) refused (job_id, attempt_id, worker)
        join ${t.liveJobs} job on job.job_id = refused.job_id
       where job.attempt_id is distinct from refused.attempt_id and job.deferred_at is null
         and (job.status = 'pending' or job.attempts + 1 < job.max_attempts)
         and not exists (select from ${t.storedEvents} event
                          where event.job_id = refused.job_id and event.attempt_id = refused.attempt_id
                            and event.event = 'job.started')
         and not exists (select from ${t.storedEvents} later
                          where later.job_id = refused.job_id and later.event = 'job.retry_later'
                            and (later.fields -> 'attempts' ? replace(refused.attempt_id::text, '-', '')
                                 or (later.fields ->> 'times')::bigint > ${namedAttempts}))
       order by job.job_id
         for no key update of job
    ),
    counted as (
      update ${t.liveJobs} set attempts = attempts + 1
       where job_id = any(array(select job_id from lost where attempts + 1 < max_attempts))
    ),
    ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where job_id = any(array(select job_id from lost where attempts + 1 >= max_attempts))
    ),
    ${finishEnded(db, {
      status: sql`'failed'`,
      error: sql`'Postgres crashed and forgot the claim of the last attempt'`,
      errorCode: sql`'claim_lost'`,
      attemptId: sql`null::uuid`,
    })},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, level, event, message, fields
        from (select job_id, attempt_id, 1 as nth, 'info' as level, 'job.started' as event, null as message,
                     jsonb_build_object('worker', worker, 'attempt', attempts + 1) as fields
                from lost
              union all
              select job_id, attempt_id, 2, 'warning', 'job.expired', 'Postgres crashed and forgot the claim',
                     jsonb_build_object('worker', worker, 'attempt', attempts + 1)
                from lost
              union all
              select job_id, attempt_id, 3, 'error', 'job.failed', 'No attempt is left',
                     jsonb_build_object('error_code', 'claim_lost', 'attempt', attempts + 1)
                from lost where attempts + 1 >= max_attempts) events
       order by job_id, nth
    )
    select count(*) from lost`,
  )
}
