import { checkInteger, checkTag } from '../check.ts'
import type { Db } from '../database/database.ts'
import { join, raw, sql, type Sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { checkId } from '../ids.ts'
import { descendantsOf } from './descendants.ts'
import {
  jobColumns,
  jobFromRow,
  summaryColumnNames,
  summaryColumns,
  summaryFromRow,
  type Job,
  type JobRow,
  type JobStatus,
  type ListedJob,
} from './job.ts'
import { withinBytes } from '../database/within-bytes.ts'

export interface ListOptions {
  status?: JobStatus
  operation?: string
  queue?: string
  parentJobId?: string
  /** Everything that descends from this job: its children, their children, and so on. */
  ancestorJobId?: string
  pipelineId?: string
  lockKey?: string
  /** Only jobs with this tag. */
  tag?: string
  /** Only jobs submitted before this one: the last id of the previous page. */
  after?: string
  limit?: number
}

/** A value that may be large, and is in a list only when it is asked for. */
export type JobValue = 'payload' | 'result'

export interface PageOptions extends ListOptions {
  include?: readonly JobValue[]
  /** Operations whose payload is included in any case. */
  payloadOf?: readonly string[]
  /** How much the values and errors of a page may take together, as JSON. One job is returned however large it is. */
  maxBytes: number
  /** Oldest first; `after` is then the last id of the previous page all the same. */
  oldestFirst?: boolean
}

export interface JobPage {
  jobs: ListedJob[]
  /** True when there are more behind the last one. */
  more: boolean
}

export const listLimits = { default: 100, max: 1000 } as const
const statuses: readonly JobStatus[] = ['pending', 'running', 'completed', 'failed', 'cancelled']

/** Jobs that fit every filter, newest first; deleted ones are hidden. */
export async function listJobs(db: Db, options: ListOptions): Promise<Job[]> {
  const rows = await db.query<JobRow>('list', listStatement(db, options))
  return rows.map(jobFromRow)
}

/** A page of summaries, with those values that are asked for, bounded in number and in bytes. */
export async function listPage(db: Db, options: PageOptions): Promise<JobPage> {
  const limit = checkLimit(options.limit)
  const rows = await db.query<JobRow & { listed: number }>('list_page', pageStatement(db, options))
  const { include = [], payloadOf = [] } = options
  const jobs = rows.slice(0, limit).map((row): ListedJob => {
    const job: ListedJob = summaryFromRow(row)
    if (include.includes('payload') || payloadOf.includes(row.operation)) job.payload = row.payload
    if (include.includes('result')) job.result = row.result
    return job
  })
  return { jobs, more: (rows[0]?.listed ?? 0) > jobs.length }
}

function pageStatement(db: Pick<Db, 't'>, options: PageOptions): Sql {
  const { include = [], payloadOf = [], maxBytes } = options
  const order = options.oldestFirst ? raw('job_id') : raw('job_id desc')
  const valueOf = (name: JobValue, wanted: Sql) => (include.includes(name) ? raw(name) : wanted)
  const none = sql`null::jsonb`
  const payload = payloadOf.length === 0 ? none : sql`case when operation = any(${payloadOf}::text[]) then payload end`
  // One more than is wanted tells whether there are more.
  const rows = sql`
    select *, coalesce(pg_column_size(payload), 0) + coalesce(pg_column_size(result), 0) as stored_bytes
      from (select ${summaryColumns(db.t)}, ${valueOf('payload', payload)} as payload, ${valueOf('result', none)} as result
              from ${db.t.jobs}
             where ${conditionsOf(db, options)} and deleted_at is null
             order by ${order} limit ${checkLimit(options.limit) + 1}) page`
  return withinBytes({
    rows,
    columns: sql`${summaryColumnNames}, payload, result`,
    writtenBytes: sql`coalesce(octet_length(payload::text), 0) + coalesce(octet_length(result::text), 0)
                        + coalesce(octet_length(error), 0)`,
    order,
    maxBytes,
  })
}

/** The statement, for the test that reads its plan. */
export function listStatement(db: Pick<Db, 't'>, options: ListOptions): Sql {
  const limit = checkLimit(options.limit)
  return sql`
    select ${jobColumns(db.t)} from ${db.t.jobs}
     where ${conditionsOf(db, options)} and deleted_at is null
     order by job_id desc limit ${limit}`
}

function checkLimit(limit: number | undefined): number {
  return checkInteger(limit ?? listLimits.default, 'limit', 1, listLimits.max)
}

function conditionsOf(db: Pick<Db, 't'>, options: ListOptions & { oldestFirst?: boolean }): Sql {
  if (options.status !== undefined && !statuses.includes(options.status)) {
    throw new FencepostError('options_invalid', `status is ${options.status}; give one of ${statuses.join(', ')}.`)
  }
  const conditions: Sql[] = [sql`true`]
  // In the text, so that a prepared statement can use the index of the few that failed.
  if (options.status !== undefined) conditions.push(raw(`status = '${options.status}'`))
  // True for every running job, and the condition of the index that holds them.
  if (options.status === 'running') conditions.push(raw('(lease_until is not null or deferred_at is not null)'))
  if (options.operation !== undefined) conditions.push(sql`operation = ${options.operation}`)
  if (options.queue !== undefined) conditions.push(sql`queue = ${options.queue}`)
  if (options.lockKey !== undefined) conditions.push(sql`lock_key = ${options.lockKey}`)
  if (options.tag !== undefined) conditions.push(sql`tags @> ${[checkTag(options.tag)]}::text[]`)
  if (options.parentJobId !== undefined) conditions.push(sql`parent_job_id = ${checkId(options.parentJobId)}::uuid`)
  if (options.ancestorJobId !== undefined) {
    conditions.push(sql`job_id in (${descendantsOf(db, checkId(options.ancestorJobId))})`)
  }
  if (options.pipelineId !== undefined) {
    conditions.push(sql`pipeline_id = ${checkId(options.pipelineId, 'pipeline id')}::uuid`)
  }
  if (options.after !== undefined) {
    const after = sql`${checkId(options.after)}::uuid`
    conditions.push(options.oldestFirst ? sql`job_id > ${after}` : sql`job_id < ${after}`)
  }
  return join(conditions, ' and ')
}
