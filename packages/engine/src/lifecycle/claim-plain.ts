import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql, type Blanks, type Sql } from '../database/sql.ts'
import {
  attemptIdOf,
  claimedFromRow,
  claimsAllowed,
  claimValues,
  running,
  usefulMs,
  waitedMs,
  type Claimed,
  type Claimer,
  type ClaimOptions,
  type OfQueue,
  type PlainRow,
} from './claim.ts'
import { isDue, pending } from './due-jobs.ts'
import { isOpen } from './queues.ts'

/*
 * claim, the short way: pending → running for jobs without slot, lock or dedup key, of the queue's most urgent priority.
 *
 * Most jobs are such, and a statement that knows nothing of slots and locks starts in half the time. It claims nothing
 * that claim() would not: what it cannot judge, it leaves.
 *
 * It does not wait for the disk, unless told to. A Postgres that crashes within a moment may have forgotten the claim:
 * the job is pending again, and all that its first attempt still reports is refused, as after any claim that was lost.
 * What the attempt writes before the crash is never kept without the claim, which is before it in the log. A job that
 * keeps others out, by a lock, a slot or a dedup key, or that may be started only once, is left to claim(), which waits.
 */

/** Where in a queue's order a claim ended. The next one of that priority can begin there: what is before it is gone. */
export interface Place {
  priority: number
  /** Seconds since 1970, exact to the microsecond. */
  runAfter: number
  jobId: string
}

export interface PlainClaimOptions extends ClaimOptions {
  /** Whether to wait for the disk. */
  durable: boolean
}

interface Shape {
  continues: boolean
  durable: boolean
  operations: 'one' | 'several'
}

interface Row extends PlainRow {
  run_after: number
}

const beginning: Place = { priority: 0, runAfter: 0, jobId: '' }

/** Claims up to `limit` such jobs. Fewer say nothing about what else is there: claim() finds out. */
export async function claimPlain(
  db: Db,
  options: PlainClaimOptions,
  from?: Place,
): Promise<{ claimed: Claimed[]; last: Place | undefined }> {
  const claimer = claimValues(options)
  const rows = await db.query<Row>('claim', claimPlainStatement(db, options, from, claimer), usefulMs(options))
  rows.sort(inOrder) // they come as they lie in the table
  const last = rows.at(-1)
  return {
    claimed: rows.map((row) => claimedFromRow(row, options, options.queue, attemptIdOf(claimer, row.job_id))),
    last: last && { priority: last.priority, runAfter: last.run_after, jobId: last.job_id },
  }
}

/** The statement, for the test that reads its plan. */
export function claimPlainStatement(
  { t }: Pick<Db, 't'>,
  options: PlainClaimOptions,
  from?: Place,
  claimer = claimValues(options),
): Sql {
  const shape: Shape = {
    continues: from !== undefined,
    durable: options.durable,
    operations: claimer.operations.length === 1 ? 'one' : 'several',
  }
  return claimingPlain(t, { ...options, ...claimer, ...(from ?? beginning) }, JSON.stringify(shape))
}

function inOrder(a: Row, b: Row): number {
  return a.run_after - b.run_after || (a.job_id < b.job_id ? -1 : 1)
}

const claimingPlain = form<Relations, Claimer & OfQueue & Place>((t, blanks, asked) => {
  const { continues, durable, operations } = JSON.parse(asked) as Shape
  const { priority, runAfter, jobId } = blanks
  // Written so that the index is entered at the place itself.
  const order = continues
    ? sql`job.priority = ${priority} and (job.run_after, job.job_id) >= (to_timestamp(${runAfter}::float8), ${jobId}::uuid)`
    : sql`job.priority = (select priority from urgent)`
  // Done once, before the first row is looked for.
  const hurry = durable ? sql`` : sql`and (select set_config('synchronous_commit', 'off', true)) = 'off'`
  const wanted = sql`${pending(blanks.queue, 'plain')} and ${order} and ${isDue(t)}`
  const due = operations === 'one' ? dueOfOne(t, blanks, wanted) : dueOfSeveral(t, blanks, wanted)
  return sql`
    with ${continues ? sql`` : sql`urgent as materialized (${mostUrgent(t, blanks)}),`}
    due as (${due(sql`${claimsAllowed(t)} and ${isOpen(t, blanks.queue)} ${hurry}`)})
    update ${t.liveJobs} set ${running(t, blanks)}
     where ctid = any(array(select place from due where plain))
    returning job_id, operation, payload, priority, attempts, max_attempts, ${waitedMs} as waited_ms, parent_job_id,
              pipeline_id, timeout_ms, date_part('epoch', run_after) as run_after`
})

type Due = (allowed: Sql) => Sql

const place = sql`
  job.ctid as place, job.lock_key is null and job.dedup_key is null and job.max_attempts > 1 as plain`

function dueOfOne(t: Relations, blanks: Blanks<Claimer & OfQueue>, wanted: Sql): Due {
  return (allowed) => sql`
      select ${place}
        from ${t.liveJobs} job
       where ${wanted} and job.operation = (${blanks.operations}::text[])[1] and ${allowed}
       order by job.run_after, job.job_id
       limit ${blanks.limit}::integer
         for update of job skip locked`
}

// The first jobs of each operation are read, to see how many of the first of all are of which; so many of it are locked.
function dueOfSeveral(t: Relations, { operations, limit }: Blanks<Claimer & OfQueue>, due: Sql): Due {
  return (allowed) => sql`
      select locked.*
        from (select operation, count(*) as share
                from (select first.*
                        from unnest(${operations}::text[]) wanted (operation)
                       cross join lateral (
                         select job.operation, job.run_after, job.job_id
                           from ${t.liveJobs} job
                          where ${due} and job.operation = wanted.operation
                          order by job.run_after, job.job_id
                          limit ${limit}::integer
                       ) first
                       order by first.run_after, first.job_id
                       limit ${limit}::integer) first
               group by operation) chosen
       cross join lateral (
         select ${place}
           from ${t.liveJobs} job
          where ${due} and job.operation = chosen.operation and ${allowed}
          order by job.run_after, job.job_id
          limit chosen.share
            for update of job skip locked
       ) locked`
}

function mostUrgent(t: Relations, blanks: Blanks<Claimer & OfQueue>): Sql {
  return sql`
    select min((select job.priority from ${t.liveJobs} job
                 where ${pending(blanks.queue, 'plain')} and job.operation = wanted.operation
                 order by job.priority limit 1)) as priority
      from unnest(${blanks.operations}::text[]) wanted (operation)`
}
