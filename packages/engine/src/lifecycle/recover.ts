import type { Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import { sql } from '../database/sql.ts'
import { requeueEnded } from './requeue.ts'

export type Recovered =
  | { recovered: true }
  | { recovered: false; why: 'not_found' }
  | { recovered: false; why: 'not_running'; status: string }
  | { recovered: false; why: 'not_stale'; claimedAt: string; staleMs: number }
  | { recovered: false; why: 'waiting_for_children' }

/**
 * recover: an operator puts a stuck running job back, with all its attempts to spend again. Only a claim older than
 * `staleMs` is taken for stuck. Its worker may be alive and renewing all the same: the lock and the slot stay with the
 * old attempt until it lets go or its last lease passes, and the job is not claimed before that.
 */
export async function recover(
  db: Db,
  jobId: string,
  options: { staleMs: number; by: string | undefined },
): Promise<Recovered> {
  const { t } = db
  const rows = await db.query(
    'recover',
    sql`
    with ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where job_id = ${jobId} and status = 'running' and deferred_at is null
         and locked_at < ${t.now} - ${options.staleMs}::bigint * interval '1 millisecond'
         for update
    ),
    ${requeueEnded(db, { runAfter: t.now, attempts: sql`0` })},
    held_slots as (
      update ${t.slots} slot
         set attempt_id = ended.attempt_id, held_until = ended.lease_until
        from ended
       where slot.slot_key = ended.slot_key and slot.job_id = ended.job_id
    ),
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'warning', 'job.recovered', 'Put back by an operator',
             jsonb_strip_nulls(jsonb_build_object('by', ${options.by ?? null}::text, 'worker', locked_by,
                                                  'claimed_at', locked_at))
        from ended
    )
    select job_id from ended`,
  )
  if (rows.length > 0) return { recovered: true }
  return whyNotRecovered(db, jobId, options.staleMs)
}

async function whyNotRecovered(db: Db, jobId: string, staleMs: number): Promise<Recovered> {
  const { t } = db
  const [job] = await db.query<{ status: string; deferred_at: string | null; locked_at: string }>(
    'recover.why',
    sql`select status, deferred_at, locked_at from ${t.jobs} where job_id = ${jobId} and deleted_at is null`,
  )
  if (job === undefined) return { recovered: false, why: 'not_found' }
  if (job.status !== 'running') return { recovered: false, why: 'not_running', status: job.status }
  if (job.deferred_at !== null) return { recovered: false, why: 'waiting_for_children' }
  return { recovered: false, why: 'not_stale', claimedAt: job.locked_at, staleMs }
}
