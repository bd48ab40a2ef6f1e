import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'

/** A query for the ids of everything that descends from a job: its children, their children, and so on. */
export function descendantsOf({ t }: Pick<Db, 't'>, jobId: string): Sql {
  return sql`
    with recursive descendants (job_id) as (
      select job_id from ${t.liveJobs} where parent_job_id = ${jobId}::uuid
      union all
      select job_id from ${t.finishedJobs} where parent_job_id = ${jobId}::uuid
      union
      select child.job_id
        from descendants parent
        join (select job_id, parent_job_id from ${t.liveJobs}
              union all
              select job_id, parent_job_id from ${t.finishedJobs}) child on child.parent_job_id = parent.job_id
    )
    select job_id from descendants`
}
