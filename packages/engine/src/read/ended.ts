import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'

/** Which jobs to count: those whose terminal event has an id in this range. */
export interface EndedRange {
  past: bigint
  upTo: bigint
  /** They have all ended within this time: an index finds those, and the ids say exactly which count. */
  withinMs: number
  /** The bounds of the buckets that durations are counted in, in seconds. */
  bounds: readonly number[]
}

/** Jobs that ended alike, and how long they took and waited together. */
export interface EndedJobs {
  queue: string
  operation: string
  outcome: string
  count: number
  /** From the first claim to the end; undefined for jobs that were never claimed. */
  took: { bucket: number; seconds: number } | undefined
  /** How long they had been due when they were last claimed. */
  waited: { bucket: number; seconds: number } | undefined
}

export interface Ended {
  ended: EndedJobs[]
  /** How many writes the fence kept out. */
  rejected: number
  /** How many leases expired. */
  expired: number
  /** How many jobs were run again. */
  ranAgain: number
  /** How many attempts took longer than their timeout. */
  timedOut: number
  /** How many jobs had not started in time. */
  unstarted: number
}

interface EndedRow {
  queue: string
  operation: string
  outcome: string
  took_bucket: number | null
  waited_bucket: number | null
  count: number
  took: number | null
  waited: number | null
}

/** Counts the jobs that ended in a range of event ids, by queue, operation, outcome and bucket. */
export async function countEnded(db: Db, { past, upTo, withinMs, bounds }: EndedRange): Promise<Ended> {
  const { t } = db
  const between = (id: 'e.id' | 'completed_event_id') =>
    id === 'e.id'
      ? sql`e.id > ${String(past)}::bigint and e.id <= ${String(upTo)}::bigint`
      : sql`completed_event_id > ${String(past)}::bigint and completed_event_id <= ${String(upTo)}::bigint`
  const [ended, counted] = await Promise.all([
    db.query<EndedRow>(
      'metrics.settled',
      sql`
      with ended as (
        select queue, operation, status, started_at, completed_at, locked_at, run_after from ${t.finishedJobs}
         where completed_at >= ${t.now} - ${withinMs} * interval '1 millisecond'
           and ${between('completed_event_id')}
        union all
        select queue, operation, status, started_at, completed_at, locked_at, run_after
          from ${t.storedEvents} e join ${t.finishedJobs} using (job_id)
         where ${between('e.id')} and e.event in ('job.completed', 'job.failed', 'job.cancelled')
      ),
      measured as (
        select queue, operation, status, extract(epoch from completed_at - started_at)::double precision as took,
               -- greatest() passes over nulls: a job that was never claimed would have waited 0 seconds
               case when locked_at is not null then greatest(extract(epoch from locked_at - run_after), 0) end
                 ::double precision as waited
          from ended
      )
      select queue, operation, status as outcome, width_bucket(took, ${bounds}::double precision[]) as took_bucket,
             width_bucket(waited, ${bounds}::double precision[]) as waited_bucket, count(*)::integer as count,
             sum(took) as took, sum(waited) as waited
        from measured group by 1, 2, 3, 4, 5`,
    ),
    db.query<{ event: string; count: number }>(
      'metrics.events',
      sql`select event, count(*)::integer as count from ${t.storedEvents} e
           where ${between('e.id')}
             and event in ('job.fence_rejected', 'job.expired', 'job.timed_out', 'job.expired_unstarted', 'job.run_again')
           group by event`,
    ),
  ])
  const of = (name: string) => counted.find(({ event }) => event === name)?.count ?? 0
  return {
    ended: ended.map(endedFromRow),
    rejected: of('job.fence_rejected'),
    expired: of('job.expired'),
    ranAgain: of('job.run_again'),
    timedOut: of('job.timed_out'),
    unstarted: of('job.expired_unstarted'),
  }
}

function endedFromRow({ took_bucket: took, waited_bucket: waited, ...row }: EndedRow): EndedJobs {
  return {
    ...row,
    took: took === null ? undefined : { bucket: took, seconds: row.took ?? 0 },
    waited: waited === null ? undefined : { bucket: waited, seconds: row.waited ?? 0 },
  }
}
