import type { Relations } from '../database/relations.ts'
import { sql, type Sql } from '../database/sql.ts'
import { dashedId } from '../ids.ts'
import type { Fence } from './outcome.ts'
import type { Submission } from './submission.ts'

/*
 * The jobs that attempts chain, written by the very statement that completes those attempts: each is made from the row
 * of an attempt that has just ended, so none exists whose attempt had lost its fence.
 *
 * Only jobs without lock and dedup key: nothing can be in the way of those. chain.ts writes the others.
 */

/** An attempt that has ended, with one of the jobs that it chained, or null. */
export interface LinkRow {
  attempt_id: string
  chained_job_id: string | null
}

/** The chained jobs by attempt, as JSON. */
export function linkedOf(attempts: readonly (Fence & { links?: readonly Submission[] })[]): string {
  const entries = attempts.map(
    ({ attemptId, links = [] }) => `"${dashedId(attemptId)}":[${links.map(linkJson).join(',')}]`,
  )
  return `{${entries.join(',')}}`
}

function linkJson(link: Submission): string {
  const { payload, operation, queue, priority, runAfter, delayMs, maxAttempts, slotKey, pipelineId, tags, by } = link
  const row = {
    operation,
    queue,
    priority,
    run_after: runAfter,
    delay_ms: delayMs,
    max_attempts: maxAttempts,
    slot_key: slotKey,
    pipeline_id: pipelineId,
    submitted_by: by,
    tags,
    timeout_ms: link.timeoutMs,
    start_by: link.startBy,
    start_within_ms: link.startWithinMs,
  }
  return `{"payload":${payload},${JSON.stringify(row).slice(1)}`
}

/** Inserts the chained jobs of `ended` and their events, as CTEs; `linked` has them in order. */
export function chainEnded(t: Relations, links: unknown): Sql {
  return sql`
    linked as (
      select wanted.*, ${t.newJobId}(${t.now}, nth) as job_id, ${t.nextEventId} as event_id
        from (
          select ended.job_id as from_job_id, ended.attempt_id, coalesce(ended.pipeline_id, ended.job_id) as pipeline,
                 link.*, row_number() over (order by ended.job_id, link.place) as nth
            from ended,
                 rows from (
                   jsonb_to_recordset(${links}::jsonb -> ended.attempt_id::text) as (
                     payload jsonb, operation text, queue text, priority integer, run_after timestamptz,
                     delay_ms integer, max_attempts integer, slot_key text, pipeline_id uuid, submitted_by text, tags text,
                     timeout_ms integer, start_by timestamptz, start_within_ms integer)
                 ) with ordinality link (payload, operation, queue, priority, run_after, delay_ms, max_attempts,
                                         slot_key, pipeline_id, submitted_by, tags, timeout_ms, start_by,
                                         start_within_ms, place)
        ) wanted
    ),
    chained as (
      insert into ${t.liveJobs} (job_id, operation, queue, payload, priority, run_after, max_attempts, slot_key,
                                 pipeline_id, submitted_at, submitted_by, tags, timeout_ms, start_by)
      select job_id, operation, queue, coalesce(payload, 'null'), priority,
             coalesce(run_after, ${t.now} + delay_ms * interval '1 millisecond'), max_attempts, slot_key,
             coalesce(pipeline_id, pipeline), ${t.now}, submitted_by, tags::text[], timeout_ms,
             coalesce(start_by, ${t.now} + start_within_ms * interval '1 millisecond')
        from linked
    ),
    told as (
      insert into ${t.storedEvents} (id, job_id, attempt_id, ts, event, fields)
      select event_id, from_job_id, attempt_id, ${t.now}, 'job.chained',
             jsonb_build_object('operation', operation, 'job_id', replace(job_id::text, '-', ''))
        from linked
    ),`
}
