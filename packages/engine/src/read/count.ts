import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { idsStatement, isScanning, type JobFilter } from './filter.ts'
import { scanEnd } from './scan.ts'

/** How many jobs fit a filter. */
export interface JobCount {
  count: number
  /** False where there are more than could be counted: then `count` is about right. */
  exact: boolean
}

const countLimits = { counted: 10_000, scanned: 100_000 } as const

/** Counts up to 10,000 jobs, in up to 100,000 where no index finds them. Beyond that it estimates. */
export async function countJobs(db: Db, filter: JobFilter): Promise<JobCount> {
  const { counted, scanned } = countLimits
  const until = await scanEnd(db, filter, {}, scanned)
  const matching = idsStatement(db, filter, { stretch: { until }, limit: counted + 1, scanned: true })
  const [row] = await db.query<{ count: number; last: string | null }>(
    'count',
    sql`select count(*)::integer as count, min(job_id::text) as last
          from ${matching} matching`,
  )
  const { count, last } = row as { count: number; last: string | null }
  if (count <= counted && until === undefined) return { count, exact: true }
  const candidates = await estimate(db, filter)
  if (!isScanning(filter)) return { count: Math.max(count, candidates), exact: false }
  // As many of the rest as of those that were looked at.
  const looked = count > counted && last !== null ? await countedDownTo(db, filter, last) : scanned
  return { count: Math.max(count, Math.round((candidates * count) / looked)), exact: false }
}

async function countedDownTo(db: Db, filter: JobFilter, until: string): Promise<number> {
  const looked = idsStatement(db, filter, {
    stretch: { until: until.replaceAll('-', '') },
    limit: countLimits.scanned,
    scanned: false,
  })
  const [row] = await db.query<{ count: number }>(
    'count.looked',
    sql`select count(*)::integer as count from ${looked} l`,
  )
  return Math.max(row?.count ?? 0, 1)
}

/** How many jobs Postgres takes there to be that an index finds. */
async function estimate(db: Db, filter: JobFilter): Promise<number> {
  const all = idsStatement(db, filter, { stretch: {}, limit: Number.MAX_SAFE_INTEGER, scanned: false })
  const [row] = await db.query<Record<string, [{ Plan: { 'Plan Rows': number } }]>>(
    'count.estimate',
    sql`explain (format json) ${all}`,
  )
  return row?.['QUERY PLAN']?.[0].Plan['Plan Rows'] ?? 0
}
