import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { Operation } from '../operation.ts'
import type { Submission, SubmitOptions } from './submission.ts'
import { claimableIds, insertSubmissions, type Submitted } from './submit.ts'

/** A job that a handler asks for, to exist only if its own attempt completes. */
export interface Link {
  operation: Operation
  payload: unknown
  options: SubmitOptions
}

/** The place of an event in its job's history: its id, and its time. */
export interface Place {
  id: bigint
  ts: string
}

/** Places taken ahead, so that what an attempt chained stands in its history before the end that made it so. */
export async function drawPlaces(db: Db, count: number): Promise<Place[]> {
  const { t } = db
  return db.query<Place>(
    'chain.places',
    sql`select ${t.nextEventId} as id, ${t.now} as ts from generate_series(1, ${count}::integer)`,
  )
}

/**
 * Writes the jobs an attempt chained, in the transaction that completes it.
 *
 * The attempt has succeeded, and a conflict cannot change that. A dedup key that is taken means that the wanted job is
 * already there. A lock that is taken means that it cannot be had: the chained job is then written as failed, so that
 * its pipeline shows what is missing instead of looking complete. Answers the ids, in order, of those that can be claimed.
 */
export async function insertChained(
  db: Db,
  from: { jobId: string; attemptId: string; pipelineId: string },
  submissions: readonly Submission[],
  places: readonly Place[],
): Promise<(string | undefined)[]> {
  const answers = await insertSubmissions(db, submissions, {
    from: 'chain',
    pipelineId: from.pipelineId,
  })
  const fields: string[] = []
  for (const [nth, answer] of answers.entries()) {
    const submission = submissions[nth] as Submission
    const { operation } = submission
    const { jobId, ...conflict } = await chainedJob(db, from.pipelineId, submission, answer)
    fields.push(JSON.stringify({ operation, job_id: jobId, ...conflict }))
  }
  await recordChained(db, from, fields, places)
  return claimableIds(answers)
}

/** What the history of the chaining job says about one link. */
async function chainedJob(
  db: Db,
  pipelineId: string,
  submission: Submission,
  answer: Submitted,
): Promise<{ jobId?: string | undefined; conflict?: string; holder?: string }> {
  if (answer.submitted) return { jobId: answer.jobId }
  if (answer.why === 'drained') return { conflict: answer.why } // never: a chained job is not new work
  const { why: conflict, holder } = answer
  const jobId = answer.why === 'locked' ? await insertFailed(db, pipelineId, submission, answer) : undefined
  return { jobId, conflict, holder: holder.jobId }
}

async function insertFailed(
  db: Db,
  pipelineId: string,
  submission: Submission,
  conflict: Extract<Submitted, { why: 'locked' }>,
): Promise<string | undefined> {
  const { t } = db
  const error = `The lock ${conflict.lockKey} is held by job ${conflict.holder.jobId}`
  const [failed] = await db.query<{ job_id: string }>(
    'chain.failed',
    sql`
    with failed as (
      insert into ${t.finishedJobs} (job_id, operation, queue, payload, status, priority, run_after, attempts,
                                     max_attempts, lock_key, slot_key, dedup_key, pipeline_id, error, error_code,
                                     submitted_at, submitted_by, completed_at, submitted_event_id, tags, timeout_ms)
      values (${t.newJobId}(${t.now}, 1), ${submission.operation}, ${submission.queue}, ${submission.payload}::jsonb,
              'failed', ${submission.priority}, ${t.now}, 0, ${submission.maxAttempts}, ${submission.lockKey ?? null},
              ${submission.slotKey ?? null}, ${submission.dedupKey ?? null}, ${submission.pipelineId ?? pipelineId},
              ${error}, 'lock_conflict', ${t.now}, ${submission.by ?? null}, ${t.now}, ${t.nextEventId},
              ${submission.tags ?? null}::text[], ${submission.timeoutMs ?? null}::integer)
      returning job_id
    )
    insert into ${t.storedEvents} (job_id, ts, level, event, message, fields)
    select job_id, ${t.now}, 'error', 'job.failed', ${error}::text, '{"error_code": "lock_conflict"}' from failed
    returning job_id`,
  )
  return failed?.job_id
}

async function recordChained(
  db: Db,
  from: { jobId: string; attemptId: string },
  fields: readonly string[],
  places: readonly Place[],
): Promise<void> {
  const { t } = db
  await db.query(
    'chain.events',
    sql`insert into ${t.storedEvents} (id, job_id, attempt_id, ts, event, fields)
        select id, ${from.jobId}, ${from.attemptId}, ts, 'job.chained', fields
          from unnest(${places.map(({ id }) => id)}::bigint[], ${places.map(({ ts }) => ts)}::timestamptz[],
                      ${fields}::jsonb[]) given (id, ts, fields)`,
  )
}
