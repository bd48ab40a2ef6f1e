import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'

/**
 * Removes one batch of finished jobs that ended more than `retentionMs` ago, with their events and steps; says how many.
 * Kept whatever their age: the current job of a slot, and children as long as their parent is there to count them.
 * Ids are time-ordered, so old jobs are the head of the primary key and no index on completed_at is needed.
 */
export async function removeOldJobs(db: Db, options: { retentionMs: number; batch: number }): Promise<number> {
  const { t } = db
  const cutoff = sql`(${t.now} - ${options.retentionMs}::bigint * interval '1 millisecond')`
  const rows = await db.query(
    'retain',
    sql`
    with old as (
      select job_id from ${t.finishedJobs} job
       where job_id < ${t.jobIdFloor}(${cutoff}) and completed_at < ${cutoff}
         and not exists (select from ${t.slots} slot where slot.slot_key = job.slot_key and slot.job_id = job.job_id)
         and not exists (select from ${t.jobs} parent where parent.job_id = job.parent_job_id)
       order by job_id limit ${options.batch}
         for update skip locked
    ),
    events as (delete from ${t.storedEvents} where job_id = any(array(select job_id from old))),
    steps as (delete from ${t.jobSteps} where job_id = any(array(select job_id from old)))
    delete from ${t.finishedJobs} where job_id = any(array(select job_id from old))
    returning job_id`,
  )
  return rows.length
}
