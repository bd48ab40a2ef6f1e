import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { jobColumns, jobFromRow, summaryColumns, type Job, type JobRow, type JobStatus } from './job.ts'
import { listPage, type JobPage, type PageOptions } from './list.ts'

export type PipelineStatus = 'running' | 'completed' | 'partial' | 'failed'

export interface Pipeline {
  pipelineId: string
  status: PipelineStatus
  /** In order of submission, children among them. */
  jobs: Job[]
}

/**
 * What a pipeline has come to: running while any of its jobs can still run, then completed if all completed, failed if
 * none did, else partial. Children are left out: their parent has judged them by its own policy. So is a job that was run
 * again: the newer one stands for it.
 */
export function pipelineStatus(
  jobs: readonly { status: JobStatus; parentJobId?: string | undefined; runAgainAs?: string | undefined }[],
): PipelineStatus {
  const own = jobs.filter(({ parentJobId, runAgainAs }) => parentJobId === undefined && runAgainAs === undefined)
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
    sql`select ${jobColumns(t)}, deleted_at is not null as deleted
          from ${t.jobs} where pipeline_id = ${pipelineId} order by job_id`,
  )
  const visible = rows.filter(({ deleted }) => !deleted)
  if (visible.length === 0) return undefined
  return { pipelineId, status: pipelineStatus(rows.map(jobFromRow)), jobs: visible.map(jobFromRow) }
}

export interface PipelinePage extends JobPage {
  pipelineId: string
  status: PipelineStatus
}

/** The pipeline with a page of its jobs, in order of submission; undefined where it has no job that may be seen. */
export async function getPipelinePage(
  db: Db,
  pipelineId: string,
  options: Omit<PageOptions, 'pipelineId' | 'oldestFirst'>,
): Promise<PipelinePage | undefined> {
  const { t } = db
  // Which states there are is all that its status depends on.
  const kinds = await db.query<{ status: JobStatus; parent: string | null; again: string | null; visible: boolean }>(
    'pipeline.states',
    sql`select status, min(parent_job_id::text) as parent, min(run_again_as::text) as again,
               bool_or(deleted_at is null) as visible
          from (select ${summaryColumns(t)}, deleted_at from ${t.jobs} where pipeline_id = ${pipelineId}) job
         group by status, parent_job_id is null, run_again_as is null`,
  )
  if (!kinds.some(({ visible }) => visible)) return undefined
  const status = pipelineStatus(
    kinds.map(({ status: one, parent, again }) => ({
      status: one,
      parentJobId: parent ?? undefined,
      runAgainAs: again ?? undefined,
    })),
  )
  return { pipelineId, status, ...(await listPage(db, { ...options, pipelineId, oldestFirst: true })) }
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
