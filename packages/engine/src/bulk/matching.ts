import type { Db } from '../database/database.ts'
import { raw, sql } from '../database/sql.ts'
import { idsStatement, isScanning, statusesOf, type JobFilter } from '../read/filter.ts'
import { scanEnd } from '../read/scan.ts'
import { statusesOfAct, type Act } from './bulk-act.ts'

/** Jobs to act on, in the order of ids. */
export interface Matching {
  jobIds: string[]
  /** Up to which job this looked; undefined at the end. */
  next: string | undefined
}

/**
 * The next jobs that fit the filter and that the act can be done to, behind `after` and before `beforeJobId`. Those that
 * were run again are not run again by a filter: the newer job stands for the old one.
 */
export async function matchingJobs(
  db: Db,
  { act, filter, beforeJobId }: { act: Act; filter: JobFilter; beforeJobId: string },
  { after, limit }: { after: string | undefined; limit: number },
): Promise<Matching> {
  const wanted = within(filter, act)
  if (wanted === undefined) return { jobIds: [], next: undefined }
  const { t } = db
  const stretch = { after, oldestFirst: true }
  const until = await scanEnd(db, wanted, stretch)
  const ids = idsStatement(db, wanted, { stretch: { ...stretch, until }, limit, scanned: true })
  const rows = await db.query<{ job_id: string; wanted: boolean }>(
    'bulk.matching',
    sql`select job_id,
               job_id < ${beforeJobId}::uuid and ${
                 act === 'run_again'
                   ? sql`not exists (select from ${t.runAgains} again where again.run_again_of = found.job_id)`
                   : raw('true')
               } as wanted
          from ${ids} found order by job_id`,
  )
  const jobIds = rows.filter((row) => row.wanted).map((row) => row.job_id)
  const last = rows.at(-1)?.job_id
  // A full batch ends with its last job, any other where the look ended.
  const end = rows.length === limit ? last : isScanning(wanted) ? until : undefined
  return { jobIds, next: end !== undefined && end < beforeJobId ? end : undefined }
}

/** The filter, within what the act can be done to; undefined where nothing is left of it. */
function within(filter: JobFilter, act: Act): JobFilter | undefined {
  const able = statusesOfAct[act]
  const status = statusesOf(filter)?.filter((one) => able.includes(one)) ?? able
  return status.length === 0 ? undefined : { ...filter, status }
}
