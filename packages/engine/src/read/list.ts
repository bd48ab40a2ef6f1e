import { checkInteger } from '../check.ts'
import type { Db } from '../database/database.ts'
import { join, raw, sql, type Sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { checkId } from '../ids.ts'
import { descendantsOf } from './descendants.ts'
import { jobColumns, jobFromRow, type Job, type JobRow, type JobStatus } from './job.ts'

export interface ListOptions {
  status?: JobStatus
  operation?: string
  queue?: string
  parentJobId?: string
  /** Everything that descends from this job: its children, their children, and so on. */
  ancestorJobId?: string
  pipelineId?: string
  lockKey?: string
  /** Only jobs submitted before this one: the last id of the previous page. */
  after?: string
  limit?: number
}

export const listLimits = { default: 100, max: 1000 } as const
const statuses: readonly JobStatus[] = ['pending', 'running', 'completed', 'failed', 'cancelled']

/** Jobs that fit every filter, newest first; deleted ones are hidden. */
export async function listJobs(db: Db, options: ListOptions): Promise<Job[]> {
  const rows = await db.query<JobRow>('list', listStatement(db, options))
  return rows.map(jobFromRow)
}

/** The statement, for the test that reads its plan. */
export function listStatement(db: Pick<Db, 't'>, options: ListOptions): Sql {
  if (options.status !== undefined && !statuses.includes(options.status)) {
    throw new FencepostError('options_invalid', `status is ${options.status}; give one of ${statuses.join(', ')}.`)
  }
  const limit = checkInteger(options.limit ?? listLimits.default, 'limit', 1, listLimits.max)
  const conditions: Sql[] = [sql`true`]
  // In the text, so that a prepared statement can use the index of the few that failed.
  if (options.status !== undefined) conditions.push(raw(`status = '${options.status}'`))
  // True for every running job, and the condition of the index that holds them.
  if (options.status === 'running') conditions.push(raw('(lease_until is not null or deferred_at is not null)'))
  if (options.operation !== undefined) conditions.push(sql`operation = ${options.operation}`)
  if (options.queue !== undefined) conditions.push(sql`queue = ${options.queue}`)
  if (options.lockKey !== undefined) conditions.push(sql`lock_key = ${options.lockKey}`)
  if (options.parentJobId !== undefined) conditions.push(sql`parent_job_id = ${checkId(options.parentJobId)}::uuid`)
  if (options.ancestorJobId !== undefined) {
    conditions.push(sql`job_id in (${descendantsOf(db, checkId(options.ancestorJobId))})`)
  }
  if (options.pipelineId !== undefined) {
    conditions.push(sql`pipeline_id = ${checkId(options.pipelineId, 'pipeline id')}::uuid`)
  }
  if (options.after !== undefined) conditions.push(sql`job_id < ${checkId(options.after)}::uuid`)
  return sql`
    select ${jobColumns} from ${db.t.jobs}
     where ${join(conditions, ' and ')} and deleted_at is null
     order by job_id desc limit ${limit}`
}
