import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { JobStatus } from '../read/job.ts'

export type Deleted =
  | { deleted: true }
  | { deleted: false; why: 'not_found' }
  | { deleted: false; why: 'unfinished'; status: 'pending' | 'running' }

/** delete: hides a finished job from reads; the row stays for audit until retention removes it. */
export async function deleteJob(db: Db, jobId: string, by: string | undefined): Promise<Deleted> {
  const { t } = db
  const rows = await db.query(
    'delete',
    sql`
    with deleted as (
      update ${t.finishedJobs} set deleted_at = ${t.now} where job_id = ${jobId} and deleted_at is null
      returning job_id
    ),
    told as (
      insert into ${t.storedEvents} (job_id, ts, event, fields)
      select job_id, ${t.now}, 'job.deleted', jsonb_strip_nulls(jsonb_build_object('by', ${by ?? null}::text))
        from deleted
    )
    select job_id from deleted`,
  )
  if (rows.length > 0) return { deleted: true }
  const [job] = await db.query<{ status: JobStatus }>(
    'delete.why',
    sql`select status from ${t.jobs} where job_id = ${jobId} and deleted_at is null`,
  )
  if (job === undefined) return { deleted: false, why: 'not_found' }
  const { status } = job
  if (status === 'pending' || status === 'running') return { deleted: false, why: 'unfinished', status }
  return deleteJob(db, jobId, by) // it has ended between the two statements
}
