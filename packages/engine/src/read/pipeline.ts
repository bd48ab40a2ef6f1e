import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { jobColumns, jobFromRow, type Job, type JobRow, type JobStatus } from './job.ts'

export type PipelineStatus = 'running' | 'completed' | 'partial' | 'failed'

export interface Pipeline {
  pipelineId: string
  status: PipelineStatus
  /** In order of submission, children among them. */
  jobs: Job[]
}

/**
 * What a pipeline has come to: running while any of its jobs can still run, then completed if all completed, failed if
 * none did, else partial. Children are left out: their parent has judged them by its own policy.
 */
export function pipelineStatus(
  jobs: readonly { status: JobStatus; parentJobId?: string | undefined }[],
): PipelineStatus {
  const own = jobs.filter(({ parentJobId }) => parentJobId === undefined)
  if (own.some(({ status }) => status === 'pending' || status === 'running')) return 'running'
  const completed = own.filter(({ status }) => status === 'completed').length
  if (completed === own.length) return 'completed'
  return completed === 0 ? 'failed' : 'partial'
}

/** The pipeline, or undefined where it has no job that may be seen. Deleted jobs are hidden, but count for its status. */
export async function getPipeline(db: Db, pipelineId: string): Promise<Pipeline | undefined> {
  const { t } = db
  const rows = await db.query<JobRow & { deleted: boolean }>(
    'pipeline',
    sql`select ${jobColumns}, deleted_at is not null as deleted
          from ${t.jobs} where pipeline_id = ${pipelineId} order by job_id`,
  )
  const visible = rows.filter(({ deleted }) => !deleted)
  if (visible.length === 0) return undefined
  return { pipelineId, status: pipelineStatus(rows.map(jobFromRow)), jobs: visible.map(jobFromRow) }
}

/** The ids of a pipeline's jobs that can still run. */
export async function unfinishedOf(db: Db, pipelineId: string): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ job_id: string }>(
    'pipeline.unfinished',
    sql`select job_id from ${t.liveJobs} where pipeline_id = ${pipelineId}`,
  )
  return rows.map((row) => row.job_id)
}
