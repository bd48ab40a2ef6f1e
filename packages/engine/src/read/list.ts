import { checkInteger } from '../check.ts'
import type { Db } from '../database/database.ts'
import { raw, sql, type Sql } from '../database/sql.ts'
import {
  jobColumns,
  jobFromRow,
  summaryColumnNames,
  summaryColumns,
  summaryFromRow,
  type Job,
  type JobRow,
  type ListedJob,
} from './job.ts'
import { conditionsOf, orderOf, type JobFilter } from './filter.ts'
import { scanEnd } from './scan.ts'
import { withinBytes } from '../database/within-bytes.ts'

export interface ListOptions extends JobFilter {
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
  /** Where the next page begins, as `after`; undefined on the last page. A page with room left has one if there is more to look at. */
  next: string | undefined
}

export const listLimits = { default: 100, max: 1000 } as const

/** Jobs that fit every filter, newest first; deleted ones are hidden. */
export async function listJobs(db: Db, options: ListOptions): Promise<Job[]> {
  const limit = checkLimit(options.limit)
  const jobs: Job[] = []
  let { after } = options
  for (;;) {
    const until = await scanEnd(db, options, { after })
    const rest = { ...options, limit: limit - jobs.length, ...(after === undefined ? {} : { after }) }
    const rows = await db.query<JobRow>('list', listStatement(db, rest, until))
    jobs.push(...rows.map(jobFromRow))
    if (jobs.length === limit || until === undefined) return jobs
    after = until
  }
}

/** A page of summaries, with those values that are asked for, bounded in number, in bytes and in what is looked at. */
export async function listPage(db: Db, options: PageOptions): Promise<JobPage> {
  const limit = checkLimit(options.limit)
  const until = await scanEnd(db, options, options)
  const rows = await db.query<JobRow & { listed: number }>('list_page', pageStatement(db, options, until))
  const { include = [], payloadOf = [] } = options
  const jobs = rows.slice(0, limit).map((row): ListedJob => {
    const job: ListedJob = summaryFromRow(row)
    if (include.includes('payload') || payloadOf.includes(row.operation)) job.payload = row.payload
    if (include.includes('result')) job.result = row.result
    return job
  })
  const more = (rows[0]?.listed ?? 0) > jobs.length
  return { jobs, next: more ? jobs.at(-1)?.jobId : until }
}

/** The statement, for the test that reads its plan. */
export function pageStatement(db: Pick<Db, 't'>, options: PageOptions, until?: string): Sql {
  const { include = [], payloadOf = [], maxBytes } = options
  const order = orderOf(options)
  const wanted = checkLimit(options.limit) + 1
  const valueOf = (name: JobValue, wanted: Sql) => (include.includes(name) ? raw(name) : wanted)
  const none = sql`null::jsonb`
  const payload = payloadOf.length === 0 ? none : sql`case when operation = any(${payloadOf}::text[]) then payload end`
  // One more than is wanted tells whether there are more.
  const rows = sql`
    select *, coalesce(pg_column_size(payload), 0) + coalesce(pg_column_size(result), 0) as stored_bytes
      from (select ${summaryColumns(db.t)}, ${valueOf('payload', payload)} as payload, ${valueOf('result', none)} as result
              from ${db.t.jobs}
             where ${conditionsOf(db, options, { ...options, until }, wanted)}
             order by ${order} limit ${wanted}) page`
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
export function listStatement(db: Pick<Db, 't'>, options: ListOptions, until?: string): Sql {
  const limit = checkLimit(options.limit)
  return sql`
    select ${jobColumns(db.t)} from ${db.t.jobs}
     where ${conditionsOf(db, options, { ...options, until }, limit)}
     order by job_id desc limit ${limit}`
}

function checkLimit(limit: number | undefined): number {
  return checkInteger(limit ?? listLimits.default, 'limit', 1, listLimits.max)
}
