import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { raw, sql, type Sql } from '../database/sql.ts'
import type { Json } from '../json.ts'

export type JobStatus = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled'

/** A job as readers see it. Times are RFC 3339 in UTC with microseconds. */
export interface Job {
  jobId: string
  operation: string
  queue: string
  payload: Json
  status: JobStatus
  priority: number
  runAfter: string
  attemptId: string | undefined
  attempts: number
  maxAttempts: number
  lockedBy: string | undefined
  lockedAt: string | undefined
  leaseUntil: string | undefined
  lockKey: string | undefined
  slotKey: string | undefined
  isCurrent: boolean
  dedupKey: string | undefined
  parentJobId: string | undefined
  pipelineId: string | undefined
  children: { total: number; completed: number; failed: number } | undefined
  deferredAt: string | undefined
  progress: { current: number; total: number | undefined } | undefined
  result: Json
  error: string | undefined
  errorCode: string | undefined
  submittedAt: string
  submittedBy: string | undefined
  /** The job that this one runs again. */
  runAgainOf: string | undefined
  /** The newest job that runs this one again. */
  runAgainAs: string | undefined
  startedAt: string | undefined
  completedAt: string | undefined
  tags: readonly string[]
  timeoutMs: number | undefined
  startBy: string | undefined
}

/** A job without what may be large: how lists show it. */
export type JobSummary = Omit<Job, 'payload' | 'result'>

/** A job in a list, with those of its values that were asked for. */
export interface ListedJob extends JobSummary {
  payload?: Json
  result?: Json
}

export interface JobRow {
  job_id: string
  operation: string
  queue: string
  payload: Json
  status: JobStatus
  priority: number
  run_after: string
  attempt_id: string | null
  attempts: number
  max_attempts: number
  locked_by: string | null
  locked_at: string | null
  lease_until: string | null
  lock_key: string | null
  slot_key: string | null
  is_current: boolean
  dedup_key: string | null
  parent_job_id: string | null
  pipeline_id: string | null
  children_total: number | null
  children_completed: number | null
  children_failed: number | null
  deferred_at: string | null
  progress_current: bigint | null
  progress_total: bigint | null
  result: Json
  error: string | null
  error_code: string | null
  submitted_at: string
  submitted_by: string | null
  started_at: string | null
  completed_at: string | null
  tags: string[] | null
  run_again_of: string | null
  run_again_as: string | null
  timeout_ms: number | null
  start_by: string | null
}

/** The columns that the view has; the others are looked up in run_agains. */
const viewColumns: Record<Exclude<keyof JobRow, 'run_again_of' | 'run_again_as'>, true> = {
  job_id: true,
  operation: true,
  queue: true,
  payload: true,
  status: true,
  priority: true,
  run_after: true,
  attempt_id: true,
  attempts: true,
  max_attempts: true,
  locked_by: true,
  locked_at: true,
  lease_until: true,
  lock_key: true,
  slot_key: true,
  is_current: true,
  dedup_key: true,
  parent_job_id: true,
  pipeline_id: true,
  children_total: true,
  children_completed: true,
  children_failed: true,
  deferred_at: true,
  progress_current: true,
  progress_total: true,
  result: true,
  error: true,
  error_code: true,
  submitted_at: true,
  submitted_by: true,
  started_at: true,
  completed_at: true,
  tags: true,
  timeout_ms: true,
  start_by: true,
}

const columnNames = Object.keys(viewColumns)
const summaryNames = columnNames.filter((name) => name !== 'payload' && name !== 'result')

/** The columns of a JobRow out of the view, by name: a later release may add a column to it. */
export function jobColumns(t: Relations): Sql {
  return sql`${raw(columnNames.join(', '))}, ${runAgainColumns(t)}`
}

/** The same without those that may be large. */
export function summaryColumns(t: Relations): Sql {
  return sql`${raw(summaryNames.join(', '))}, ${runAgainColumns(t)}`
}

/** The names of the summary columns, for a statement around one that selects them. */
export const summaryColumnNames: Sql = raw([...summaryNames, 'run_again_of', 'run_again_as'].join(', '))

function runAgainColumns(t: Relations): Sql {
  return sql`
    (select again.run_again_of from ${t.runAgains} again where again.job_id = jobs.job_id) as run_again_of,
    (select again.job_id from ${t.runAgains} again where again.run_again_of = jobs.job_id
      order by again.job_id desc limit 1) as run_again_as`
}

/** The job, or undefined where there is none or it was deleted. */
export async function getJob(db: Db, jobId: string): Promise<Job | undefined> {
  const { t } = db
  const rows = await db.query<JobRow>(
    'get',
    sql`select ${jobColumns(t)} from ${t.jobs} where job_id = ${jobId} and deleted_at is null`,
  )
  return rows.map(jobFromRow)[0]
}

/** Those of these jobs that are there, by their ids. */
export async function getJobs(db: Db, jobIds: readonly string[]): Promise<Map<string, Job>> {
  const { t } = db
  const rows = await db.query<JobRow>(
    'get_many',
    sql`select ${jobColumns(t)} from ${t.jobs} where job_id = any(${jobIds}::uuid[]) and deleted_at is null`,
  )
  return new Map(rows.map((row) => [row.job_id, jobFromRow(row)]))
}

/** A row whose values are only there where they are small. */
type SummaryRow = JobRow & { complete: boolean }

/** Returns the jobs that exist, by id. Jobs whose values take more than `inlineBytes` in Postgres come without them. */
export async function getListedJobs(
  db: Db,
  jobIds: readonly string[],
  inlineBytes: number,
): Promise<Map<string, ListedJob>> {
  const { t } = db
  const isSmall = sql`coalesce(pg_column_size(payload), 0) + coalesce(pg_column_size(result), 0) <= ${inlineBytes}::integer`
  const rows = await db.query<SummaryRow>(
    'get_listed',
    sql`select ${summaryColumns(t)}, ${isSmall} as complete, case when ${isSmall} then payload end as payload,
               case when ${isSmall} then result end as result
          from ${t.jobs} where job_id = any(${jobIds}::uuid[]) and deleted_at is null`,
  )
  return new Map(rows.map((row) => [row.job_id, row.complete ? jobFromRow(row) : summaryFromRow(row)]))
}

export function jobFromRow(row: JobRow): Job {
  return { ...summaryFromRow(row), payload: row.payload, result: row.result }
}

/** The one place where columns become properties. */
export function summaryFromRow(row: Omit<JobRow, 'payload' | 'result'>): JobSummary {
  return {
    jobId: row.job_id,
    operation: row.operation,
    queue: row.queue,
    status: row.status,
    priority: row.priority,
    runAfter: row.run_after,
    attemptId: row.attempt_id ?? undefined,
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
    lockedBy: row.locked_by ?? undefined,
    lockedAt: row.locked_at ?? undefined,
    leaseUntil: row.lease_until ?? undefined,
    lockKey: row.lock_key ?? undefined,
    slotKey: row.slot_key ?? undefined,
    isCurrent: row.is_current,
    dedupKey: row.dedup_key ?? undefined,
    parentJobId: row.parent_job_id ?? undefined,
    pipelineId: row.pipeline_id ?? undefined,
    children:
      row.children_total === null
        ? undefined
        : { total: row.children_total, completed: row.children_completed ?? 0, failed: row.children_failed ?? 0 },
    deferredAt: row.deferred_at ?? undefined,
    progress:
      row.progress_current === null
        ? undefined
        : {
            current: Number(row.progress_current),
            total: row.progress_total === null ? undefined : Number(row.progress_total),
          },
    error: row.error ?? undefined,
    errorCode: row.error_code ?? undefined,
    submittedAt: row.submitted_at,
    submittedBy: row.submitted_by ?? undefined,
    runAgainOf: row.run_again_of ?? undefined,
    runAgainAs: row.run_again_as ?? undefined,
    startedAt: row.started_at ?? undefined,
    completedAt: row.completed_at ?? undefined,
    tags: row.tags ?? [],
    timeoutMs: row.timeout_ms ?? undefined,
    startBy: row.start_by ?? undefined,
  }
}
