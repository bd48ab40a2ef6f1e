import { checkInteger } from '../check.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { checkId } from '../ids.ts'
import type { Json } from '../json.ts'

const statuses = ['completed', 'failed', 'cancelled'] as const

/** A child that has ended, as a part that sums up reads it. */
export interface EndedChild {
  jobId: string
  operation: string
  status: (typeof statuses)[number]
  payload: Json
  result: Json
  error: string | undefined
  errorCode: string | undefined
  lockKey: string | undefined
}

export interface ChildrenOptions {
  /** Only children submitted after this one: the last id of the page before. */
  after?: string
  limit?: number
  status?: EndedChild['status']
}

const childrenLimits = { default: 100, max: 10_000 } as const

interface Row {
  job_id: string
  operation: string
  status: EndedChild['status']
  payload: Json
  result: Json
  error: string | null
  error_code: string | null
  lock_key: string | null
}

/** A page of the ended children of a job, in the order of their submission. */
export async function listEndedChildren(db: Db, jobId: string, options: ChildrenOptions): Promise<EndedChild[]> {
  const { t } = db
  const { after, status } = options
  if (status !== undefined && !statuses.includes(status)) {
    throw new FencepostError('options_invalid', `status is ${String(status)}; give one of ${statuses.join(', ')}.`)
  }
  const limit = checkInteger(options.limit ?? childrenLimits.default, 'limit', 1, childrenLimits.max)
  const rows = await db.query<Row>(
    'children.ended',
    sql`select job_id, operation, status, payload, result, error, error_code, lock_key
          from ${t.finishedJobs}
         where parent_job_id = ${jobId}
           ${status === undefined ? sql`` : sql`and status = ${status}`}
           ${after === undefined ? sql`` : sql`and job_id > ${checkId(after, 'after')}`}
         order by job_id
         limit ${limit}`,
  )
  return rows.map(({ job_id: id, error, error_code: errorCode, lock_key: lockKey, ...rest }) => ({
    jobId: id,
    ...rest,
    error: error ?? undefined,
    errorCode: errorCode ?? undefined,
    lockKey: lockKey ?? undefined,
  }))
}

/** Children that were left out because other jobs held their locks. */
export interface SkippedChildren {
  count: number
  locks: { lockKey: string; holder: string }[]
}

export async function skippedChildrenOf(db: Db, jobId: string): Promise<SkippedChildren> {
  const { t } = db
  const [row] = await db.query<{ skipped: { count: number; locks: { lock_key: string; holder: string }[] } | null }>(
    'children.skipped',
    sql`select children_skipped as skipped from ${t.liveJobs} where job_id = ${jobId}`,
  )
  const { count = 0, locks = [] } = row?.skipped ?? {}
  return { count, locks: locks.map(({ lock_key: lockKey, holder }) => ({ lockKey, holder })) }
}
