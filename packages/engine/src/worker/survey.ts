import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql, type Sql } from '../database/sql.ts'
import { claimsAllowed } from '../lifecycle/claim.ts'
import { pending } from '../lifecycle/due-jobs.ts'
import { ofOpenQueue } from '../lifecycle/queues.ts'
import { startPassed } from '../lifecycle/start-by.ts'
import { submissionsAllowed } from '../lifecycle/submit.ts'

/** What there is for a worker, in all of its queues. */
export interface Survey {
  /** The queues with due jobs. A claim may still find that all of them wait for their slot. */
  due: string[]
  /** How long until the next job is due that is not due yet. */
  nextMs: number | undefined
  /** Whether any lease has passed, of whichever worker, or the time until when some job should have started. */
  expired: boolean
  /** Whether a schedule of its operations is due. */
  scheduled: boolean
}

interface Row {
  /** What the row is about: a queue, all leases, or all schedules. */
  about: 'queue' | 'leases' | 'schedules'
  queue: string | null
  due: boolean
  next_ms: number | null
}

interface Values {
  queues: readonly string[]
  operations: readonly string[]
}

/** Not knowing costs less than waiting: nothing is claimed meanwhile. */
const answerMs = 5_000
/** How many groups of a queue to look at. A queue with more of them counts as due: a claim reads no more than it needs. */
const maxGroups = 200

/**
 * Looks at all queues of a worker in one statement: which have due jobs of its operations, and when the next is due. It
 * goes from group to group (operation and priority), so that what it reads does not grow with the jobs in them.
 */
export async function survey(db: Db, queues: readonly string[], operations: readonly string[]): Promise<Survey> {
  const rows = await db.query<Row>('survey', surveyStatement(db, queues, operations), answerMs)
  const next = rows.flatMap((row) => row.next_ms ?? [])
  return {
    due: rows.flatMap(({ queue, due }) => (due && queue !== null ? [queue] : [])),
    expired: rows.some(({ about, due }) => due && about === 'leases'),
    scheduled: rows.some(({ about, due }) => due && about === 'schedules'),
    nextMs: next.length > 0 ? Math.min(...next) : undefined,
  }
}

/** The statement, for the test that reads its plan. */
export function surveyStatement({ t }: Pick<Db, 't'>, queues: readonly string[], operations: readonly string[]): Sql {
  return surveying(t, { queues, operations })
}

const wantedQueue = sql`wanted.queue`

const surveying = form<Relations, Values>((t, { queues, operations }) => {
  const groups = (jobs: Sql) => sql`
    (with recursive of_queue (operation, priority, nth) as (
       (select job.operation, job.priority, 1 from ${t.liveJobs} job
         where ${jobs}
         order by job.operation, job.priority limit 1)
       union all
       select next.operation, next.priority, of_queue.nth + 1
         from of_queue
        cross join lateral (
          select job.operation, job.priority from ${t.liveJobs} job
           where ${jobs}
             and (job.operation, job.priority) > (of_queue.operation, of_queue.priority)
           order by job.operation, job.priority limit 1
        ) next
        where of_queue.nth <= ${maxGroups}
     )
     select of_queue.nth > ${maxGroups} or ${first(t, jobs, sql`<=`)} is not null as due, ${first(t, jobs, sql`>`)} as next
       from of_queue
      where of_queue.nth > ${maxGroups} or of_queue.operation = any(${operations}::text[]))`
  return sql`
    select 'queue' as about, wanted.queue, bool_or(found.due) and ${claimsAllowed(t)} and ${ofOpenQueue(t, wantedQueue)} as due,
           (extract(epoch from min(found.next) - ${t.now}) * 1000)::double precision as next_ms
      from unnest(${queues}::text[]) wanted (queue)
     cross join lateral (
       ${groups(pending(wantedQueue, 'plain'))} union all ${groups(pending(wantedQueue, 'slotted'))}
     ) found
     group by wanted.queue
    union all
    select 'leases', null, exists (select from ${t.liveJobs} where status = 'running' and lease_until <= ${t.now})
                             or exists (select from ${t.liveJobs} where ${startPassed(t)}), null
    union all
    select 'schedules', null, next_at <= ${t.now} and ${submissionsAllowed(t)},
           case when next_at > ${t.now} then (extract(epoch from next_at - ${t.now}) * 1000)::double precision end
      from (select min(next_at) as next_at from ${t.schedules}
             where paused_at is null and operation = any(${operations}::text[])) soonest`
})

// The first time of the group, due or not due yet.
function first(t: Relations, jobs: Sql, side: Sql): Sql {
  return sql`
    (select job.run_after from ${t.liveJobs} job
      where ${jobs} and job.operation = of_queue.operation
        and job.priority = of_queue.priority and job.run_after ${side} ${t.now}
      order by job.run_after limit 1)`
}
