import { checkKey, checkTag, checkTime } from '../check.ts'
import type { Db } from '../database/database.ts'
import { join, raw, sql, type Sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { checkId } from '../ids.ts'
import { descendantsOf } from './descendants.ts'
import type { JobStatus } from './job.ts'

/*
 * Which jobs are meant. What an index finds in the order of ids is read by it. Everything else is looked for in a bounded
 * number of jobs at a time: no filter, whatever it says, makes one statement read a whole table.
 */

export interface JobFilter {
  status?: JobStatus | readonly JobStatus[]
  operation?: string | readonly string[]
  queue?: string
  errorCode?: string
  /** The worker that has the job, or had it last. */
  workerId?: string
  /** Submitted at this time or later. */
  submittedFrom?: Date | string
  submittedBefore?: Date | string
  /** Ended at this time or later, in whichever way. */
  completedFrom?: Date | string
  completedBefore?: Date | string
  /** In the lock key or the payload, in upper or lower case. Payloads that take more than 16 kB in Postgres are not read. */
  text?: string
  parentJobId?: string
  /** Everything that descends from this job: its children, their children, and so on. */
  ancestorJobId?: string
  pipelineId?: string
  lockKey?: string
  /** Only jobs with this tag. */
  tag?: string
}

/** Where to begin, in which direction, and where to end at the latest. */
export interface Stretch {
  /** Behind this id. */
  after?: string | undefined
  oldestFirst?: boolean | undefined
  /** Up to this id, itself included. */
  until?: string | undefined
}

/** So many jobs are looked at, at most, for what no index finds. */
export const scanRows = 10_000
const maxTextBytes = 16_384
// How far an id may be from the time of submission: those of many jobs run ahead of the clock, and those of jobs with keys are
// drawn before their locks are waited for.
const idsOffMs = 120_000

const allStatuses: readonly JobStatus[] = ['pending', 'running', 'completed', 'failed', 'cancelled']

/** The statuses that a filter names, or undefined for all. */
export function statusesOf({ status }: Pick<JobFilter, 'status'>): readonly JobStatus[] | undefined {
  if (status === undefined) return undefined
  const given = [...new Set(typeof status === 'string' ? [status] : status)]
  const unknown = given.find((one) => !allStatuses.includes(one))
  if (unknown !== undefined || given.length === 0) {
    throw new FencepostError(
      'options_invalid',
      `status is ${unknown ?? 'an empty list'}; give one of ${allStatuses.join(', ')}.`,
    )
  }
  return given
}

/** The ids of jobs that fit, in order: one part for each status, because each has its place in an index. */
export function idsStatement(
  db: Pick<Db, 't'>,
  filter: JobFilter,
  /** Without `scanned`, the jobs that an index finds, whether they fit the rest or not, and deleted ones too. */
  options: { stretch: Stretch; limit: number; offset?: number; scanned: boolean },
): Sql {
  const { stretch, limit, offset = 0, scanned } = options
  const order = orderOf(stretch)
  const others = scanned ? [...scannedConditions(filter), raw('deleted_at is null')] : []
  const conditions = join([...indexedConditions(db, filter, stretch), ...others, raw('true')], ' and ')
  const part = (status: Sql, wanted: Sql) =>
    sql`(select job_id from ${db.t.jobs} where ${status} and ${conditions} order by ${order} ${wanted})`
  const statuses = statusesOf(filter)
  const bounds = sql`limit ${limit}::bigint offset ${offset}::bigint`
  if (statuses === undefined) return part(raw('true'), bounds)
  if (statuses.length === 1) return part(statusCondition(statuses[0] as JobStatus), bounds)
  const parts = statuses.map((status) => part(statusCondition(status), sql`limit ${limit + offset}::bigint`))
  return sql`(select job_id from (${join(parts, ' union all ')}) parts order by ${order} ${bounds})`
}

export function orderOf({ oldestFirst }: Stretch): Sql {
  return oldestFirst ? raw('job_id') : raw('job_id desc')
}

/** All conditions, for jobs of which it does not matter how they are found; `limit` of them are wanted. */
export function conditionsOf(db: Pick<Db, 't'>, filter: JobFilter, stretch: Stretch, limit: number): Sql {
  const statuses = statusesOf(filter)
  if (statuses !== undefined && statuses.length > 1) {
    return sql`job_id = any(array(${idsStatement(db, filter, { stretch, limit, scanned: true })}))`
  }
  const status = statuses?.map(statusCondition) ?? []
  return join(
    [...status, ...indexedConditions(db, filter, stretch), ...scannedConditions(filter), raw('deleted_at is null')],
    ' and ',
  )
}

/** True for a filter with a condition that no index answers. */
export function isScanning(filter: JobFilter): boolean {
  return scannedConditions(filter).length > 0
}

// In the text, so that a prepared statement can use the index of the few that failed. What is added for running jobs is
// true for every one of them, and the condition of the index that holds them.
function statusCondition(status: JobStatus): Sql {
  const running = status === 'running' ? ' and (lease_until is not null or deferred_at is not null)' : ''
  return raw(`status = '${status}'${running}`)
}

// Ids have no times before 1970.
const sinceEpoch = (time: Sql) => sql`greatest(${time}, 'epoch'::timestamptz)`

function indexedConditions(db: Pick<Db, 't'>, filter: JobFilter, { after, until, oldestFirst }: Stretch): Sql[] {
  const { t } = db
  const conditions: Sql[] = []
  const add = (condition: Sql) => conditions.push(condition)
  const off = sql`${idsOffMs} * interval '1 millisecond'`
  if (filter.errorCode !== undefined) add(sql`error_code = ${checkKey(filter.errorCode, 'errorCode')}`)
  if (filter.lockKey !== undefined) add(sql`lock_key = ${filter.lockKey}`)
  if (filter.tag !== undefined) add(sql`tags @> ${[checkTag(filter.tag)]}::text[]`)
  if (filter.parentJobId !== undefined) add(sql`parent_job_id = ${checkId(filter.parentJobId)}::uuid`)
  if (filter.ancestorJobId !== undefined) add(sql`job_id in (${descendantsOf(db, checkId(filter.ancestorJobId))})`)
  if (filter.pipelineId !== undefined) add(sql`pipeline_id = ${checkId(filter.pipelineId, 'pipeline id')}::uuid`)
  // Ids are in the order of submission, and no job ends before it is submitted.
  if (filter.submittedFrom !== undefined) {
    const from = sql`${checkTime(filter.submittedFrom, 'submittedFrom')}::timestamptz`
    add(sql`submitted_at >= ${from} and job_id >= ${t.jobIdFloor}(${sinceEpoch(sql`${from} - ${off}`)})`)
  }
  if (filter.submittedBefore !== undefined) {
    const before = sql`${checkTime(filter.submittedBefore, 'submittedBefore')}::timestamptz`
    add(sql`submitted_at < ${before} and job_id < ${t.jobIdFloor}(${sinceEpoch(sql`${before} + ${off}`)})`)
  }
  if (filter.completedBefore !== undefined) {
    const before = sql`${checkTime(filter.completedBefore, 'completedBefore')}::timestamptz`
    add(sql`job_id < ${t.jobIdFloor}(${sinceEpoch(sql`${before} + ${off}`)})`)
  }
  if (after !== undefined) add(sql`job_id ${raw(oldestFirst ? '>' : '<')} ${checkId(after)}::uuid`)
  if (until !== undefined) add(sql`job_id ${raw(oldestFirst ? '<=' : '>=')} ${checkId(until)}::uuid`)
  return conditions
}

function scannedConditions(filter: JobFilter): Sql[] {
  const conditions: Sql[] = []
  const { operation, text } = filter
  if (operation !== undefined) {
    conditions.push(sql`operation = any(${typeof operation === 'string' ? [operation] : [...operation]}::text[])`)
  }
  if (filter.queue !== undefined) conditions.push(sql`queue = ${filter.queue}`)
  if (filter.workerId !== undefined) conditions.push(sql`locked_by = ${filter.workerId}`)
  if (filter.completedFrom !== undefined) {
    conditions.push(sql`completed_at >= ${checkTime(filter.completedFrom, 'completedFrom')}::timestamptz`)
  }
  if (filter.completedBefore !== undefined) {
    conditions.push(sql`completed_at < ${checkTime(filter.completedBefore, 'completedBefore')}::timestamptz`)
  }
  if (text !== undefined) {
    const wanted = sql`lower(${checkKey(text, 'text')}::text)`
    conditions.push(sql`(strpos(lower(coalesce(lock_key, '')), ${wanted}) > 0
      or case when pg_column_size(payload) <= ${maxTextBytes}::integer then strpos(lower(payload::text), ${wanted}) > 0 end)`)
  }
  return conditions
}
