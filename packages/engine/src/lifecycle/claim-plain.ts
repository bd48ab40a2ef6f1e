import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql, type Sql } from '../database/sql.ts'
import {
  claimedFromRow,
  claimsAllowed,
  claimValues,
  running,
  waitedMs,
  type Claimed,
  type Claimer,
  type ClaimOptions,
  type OfQueue,
  type PlainRow,
} from './claim.ts'

/*
 * claim, the short way: pending → running for jobs that have no slot and no lock, of the queue's most urgent priority.
 *
 * Most jobs are such, and a statement that knows nothing of slots and locks starts in half the time. It claims nothing
 * that claim() would not: what it cannot judge, it leaves.
 */

/** Where in a queue's order a claim ended. The next one of that priority can begin there: what is before it is gone. */
export interface Place {
  priority: number
  /** As Postgres writes it. */
  runAfter: string
  jobId: string
}

const beginning: Place = { priority: 0, runAfter: '', jobId: '' }

/** Claims up to `limit` such jobs. Fewer say nothing about what else is there: claim() finds out. */
export async function claimPlain(
  db: Db,
  options: ClaimOptions,
  from?: Place,
): Promise<{ claimed: Claimed[]; last: Place | undefined }> {
  const rows = await db.query<PlainRow>('claim', claimPlainStatement(db, options, from))
  rows.sort(inOrder) // they come as they lie in the table
  const last = rows.at(-1)
  return {
    claimed: rows.map((row) => claimedFromRow(row, options, options.queue)),
    last: last && { priority: last.priority, runAfter: last.run_after_text, jobId: last.job_id },
  }
}

/** The statement, for the test that reads its plan. */
export function claimPlainStatement({ t }: Pick<Db, 't'>, options: ClaimOptions, from?: Place): Sql {
  const values = { ...options, ...claimValues(options) }
  if (from === undefined) return claimingPlain(t, { ...values, ...beginning })
  return claimingPlain(t, { ...values, ...from }, 'from')
}

function inOrder(a: PlainRow, b: PlainRow): number {
  if (a.run_after_text !== b.run_after_text) return a.run_after_text < b.run_after_text ? -1 : 1
  return a.job_id < b.job_id ? -1 : 1
}

const claimingPlain = form<Relations, Claimer & OfQueue & Place>((t, blanks, shape) => {
  const { queue, operations, limit, priority, runAfter, jobId } = blanks
  // Written so that the index is entered at the place itself.
  const order =
    shape === 'from'
      ? sql`job.priority = ${priority} and (job.run_after, job.job_id) >= (${runAfter}::timestamptz, ${jobId}::uuid)`
      : sql`job.priority = (select job.priority from ${t.liveJobs} job
                             where job.status = 'pending' and job.queue = ${queue} order by job.priority limit 1)`
  return sql`
    with due as (
      select job.ctid as place, job.slot_key is null and job.lock_key is null as plain
        from ${t.liveJobs} job
       where job.status = 'pending' and job.queue = ${queue} and ${order}
         and job.run_after <= ${t.now} and job.operation = any(${operations}::text[]) and ${claimsAllowed(t)}
       order by job.run_after, job.job_id
       limit ${limit}::integer
         for update of job skip locked
    )
    update ${t.liveJobs} set ${running(t, blanks)}
     where ctid = any(array(select place from due where plain))
    returning job_id, attempt_id, operation, payload, priority, attempts, max_attempts, ${waitedMs} as waited_ms,
              parent_job_id, pipeline_id, run_after::text as run_after_text`
})
