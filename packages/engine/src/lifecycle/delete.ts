import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { JobStatus } from '../read/job.ts'

export type Deleted =
  | { deleted: true }
  | { deleted: false; why: 'not_found' }
  | { deleted: false; why: 'unfinished'; status: 'pending' | 'running' }

/** delete: hides finished jobs from reads; the rows stay for audit until retention removes them. Returns those it hid. */
export async function deleteJobs(db: Db, jobIds: readonly string[], by: string | undefined): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ job_id: string }>(
    'delete',
    sql`
    with found as (
      select job_id from ${t.finishedJobs} where job_id = any(${jobIds}::uuid[]) and deleted_at is null
       order by job_id
         for update
    ),
    deleted as (
      update ${t.finishedJobs} set deleted_at = ${t.now}
       where job_id = any(array(select job_id from found)) and deleted_at is null
      returning job_id
    ),
    told as (
      insert into ${t.storedEvents} (job_id, ts, event, fields)
      select job_id, ${t.now}, 'job.deleted', jsonb_strip_nulls(jsonb_build_object('by', ${by ?? null}::text))
        from deleted
    )
    select job_id from deleted`,
  )
  return rows.map((row) => row.job_id)
}

export async function deleteJob(db: Db, jobId: string, by: string | undefined): Promise<Deleted> {
  const { t } = db
  if ((await deleteJobs(db, [jobId], by)).length > 0) return { deleted: true }
  const [job] = await db.query<{ status: JobStatus }>(
    'delete.why',
    sql`select status from ${t.jobs} where job_id = ${jobId} and deleted_at is null`,
  )
  if (job === undefined) return { deleted: false, why: 'not_found' }
  const { status } = job
  if (status === 'pending' || status === 'running') return { deleted: false, why: 'unfinished', status }
  return deleteJob(db, jobId, by) // it has ended between the two statements
}
