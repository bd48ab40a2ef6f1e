import { relationOf, sql, type PackageDb } from '@fencepost/engine'

export interface JobsOfTable {
  readonly lastJob: { job_id: string; status: string; submitted_at: string } | undefined
  /** The job that holds the lock. */
  readonly lockedBy: string | undefined
}

interface Row {
  lock_key: string
  locked_by: string | null
  job_id: string | null
  status: string
  submitted_at: string
}

/** Returns the last job and the holder of each lock, from the engine's public relations, in one statement. */
export async function jobsOfTables(db: PackageDb, lockKeys: readonly string[]): Promise<Map<string, JobsOfTable>> {
  const { schema } = db.t
  const rows = await db.query<Row>(
    'inventory.jobs',
    sql`select wanted.lock_key, held.job_id as locked_by, last.job_id, last.status, last.submitted_at
          from unnest(${lockKeys}::text[]) wanted (lock_key)
          left join ${relationOf(schema, 'resource_locks')} held using (lock_key)
          left join lateral (
            select job.job_id, job.status, job.submitted_at from ${relationOf(schema, 'jobs')} job
             where job.lock_key = wanted.lock_key and job.deleted_at is null
             order by job.job_id desc limit 1
          ) last on true`,
  )
  return new Map(
    rows.map(({ lock_key: key, locked_by: lockedBy, job_id: jobId, status, submitted_at: submittedAt }) => [
      key,
      {
        lastJob: jobId === null ? undefined : { job_id: jobId, status, submitted_at: submittedAt },
        lockedBy: lockedBy ?? undefined,
      },
    ]),
  )
}
