import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'

/**
 * Removes one batch of finished jobs that ended more than `retentionMs` ago, with their events and steps; says how many.
 * A slot goes with its current job: one that is not used again leaves nothing behind. Kept whatever their age: the job
 * of a slot that a worker may still be in, and children as long as their parent is there to count them.
 * Ids are time-ordered, so old jobs are the head of the primary key and no index on completed_at is needed.
 */
export async function removeOldJobs(db: Db, options: { retentionMs: number; batch: number }): Promise<number> {
  const { t } = db
  const cutoff = sql`(${t.now} - ${options.retentionMs}::bigint * interval '1 millisecond')`
  const rows = await db.query(
    'retain',
    sql`
    with old as (
      select job_id, slot_key from ${t.finishedJobs} job
       where job_id < ${t.jobIdFloor}(${cutoff}) and completed_at < ${cutoff}
         and not exists (select from ${t.slots} slot where slot.slot_key = job.slot_key and slot.job_id = job.job_id
                            and slot.held_until > ${t.now})
         and not exists (select from ${t.jobs} parent where parent.job_id = job.parent_job_id)
       order by job_id limit ${options.batch}
         for update skip locked
    ),
    slots as (
      delete from ${t.slots}
       where slot_key = any(array(select slot_key from old where slot_key is not null))
         and job_id = any(array(select job_id from old))
         and (held_until is null or held_until <= ${t.now})
    ),
    events as (delete from ${t.storedEvents} where job_id = any(array(select job_id from old))),
    steps as (delete from ${t.jobSteps} where job_id = any(array(select job_id from old))),
    run_agains as (delete from ${t.runAgains} where job_id = any(array(select job_id from old)))
    delete from ${t.finishedJobs} where job_id = any(array(select job_id from old))
    returning job_id`,
  )
  return rows.length
}
