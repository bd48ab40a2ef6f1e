import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import { jobColumns, jobFromRow, type Job, type JobRow, type JobStatus } from './job.ts'
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
  const [found] = await db.query<{ visible: boolean; statuses: JobStatus[] }>(
    'pipeline.states',
    statesStatement(db, pipelineId),
  )
  if (found?.visible !== true) return undefined
  const status = pipelineStatus(found.statuses.map((one) => ({ status: one })))
  return { pipelineId, status, ...(await listPage(db, { ...options, pipelineId, oldestFirst: true })) }
}

/** Which states its own jobs are in, which is all that its status depends on, and whether any job may be seen. */
export function statesStatement({ t }: Pick<Db, 't'>, pipelineId: string): Sql {
  const id = sql`${pipelineId}::uuid`
  // The first of each, in the order of an index: without an order Postgres may look through the table for one.
  const first = (table: Sql, condition: Sql) =>
    sql`exists (select from ${table} where pipeline_id = ${id} and ${condition} order by job_id limit 1)`
  // A scalar subquery and no anti-join, for which Postgres may read all jobs first.
  const stands = sql`coalesce((select false from ${t.runAgains} again where again.run_again_of = job.job_id limit 1), true)`
  const finished = (status: Sql) =>
    first(sql`${t.finishedJobs} job`, sql`parent_job_id is null and status = ${status} and ${stands}`)
  return sql`
    select ${first(t.liveJobs, sql`true`)} or ${first(t.finishedJobs, sql`deleted_at is null`)} as visible,
           array_remove(array[
             case when ${first(t.liveJobs, sql`parent_job_id is null`)} then 'running' end,
             case when ${finished(sql`'completed'`)} then 'completed' end,
             case when ${finished(sql`'failed'`)} then 'failed' end,
             case when ${finished(sql`'cancelled'`)} then 'cancelled' end], null) as statuses`
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
