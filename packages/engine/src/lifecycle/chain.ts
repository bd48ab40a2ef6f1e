import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { Operation } from '../operation.ts'
import type { Submission, SubmitOptions } from './submission.ts'
import { insertSubmissions, type Submitted } from './submit.ts'

/** A job that a handler asks for, to exist only if its own attempt completes. */
export interface Link {
  operation: Operation
  payload: unknown
  options: SubmitOptions
}

/** Event ids drawn ahead, so that what an attempt chained stands in its history before the end that made it so. */
export async function drawEventIds(db: Db, count: number): Promise<bigint[]> {
  const { t } = db
  const rows = await db.query<{ id: bigint }>(
    'chain.event_ids',
    sql`select ${t.nextEventId} as id from generate_series(1, ${count}::integer)`,
  )
  return rows.map((row) => row.id)
}

/**
 * Writes the jobs an attempt chained, in the transaction that completes it.
 *
 * The attempt has succeeded, and a conflict cannot change that. A dedup key that is taken means that the wanted job is
 * already there. A lock that is taken means that it cannot be had: the chained job is then written as failed, so that
 * its pipeline shows what is missing instead of looking complete.
 */
export async function insertChained(
  db: Db,
  from: { jobId: string; attemptId: string; pipelineId: string },
  submissions: readonly Submission[],
  eventIds: readonly bigint[],
): Promise<void> {
  const answers = await insertSubmissions(db, submissions, {
    from: 'chain',
    pipelineId: from.pipelineId,
  })
  for (const [nth, answer] of answers.entries()) {
    const submission = submissions[nth] as Submission
    if (!answer.submitted && answer.why === 'locked') await insertFailed(db, from.pipelineId, submission, answer)
  }
  await recordChained(db, from, submissions, answers, eventIds)
}

async function insertFailed(
  db: Db,
  pipelineId: string,
  submission: Submission,
  conflict: Extract<Submitted, { why: 'locked' }>,
): Promise<void> {
  const { t } = db
  const error = `The lock ${conflict.lockKey} is held by job ${conflict.holder.jobId}`
  await db.query(
    'chain.failed',
    sql`
    with failed as (
      insert into ${t.finishedJobs} (job_id, operation, queue, payload, status, priority, run_after, attempts,
                                     max_attempts, lock_key, slot_key, dedup_key, pipeline_id, error, error_code,
                                     submitted_at, submitted_by, completed_at, submitted_event_id)
      values (${t.newJobId}(${t.now}, 1), ${submission.operation}, ${submission.queue}, ${submission.payload}::jsonb,
              'failed', ${submission.priority}, ${t.now}, 0, ${submission.maxAttempts}, ${submission.lockKey ?? null},
              ${submission.slotKey ?? null}, ${submission.dedupKey ?? null}, ${pipelineId}, ${error}, 'lock_conflict',
              ${t.now}, ${submission.by ?? null}, ${t.now}, ${t.nextEventId})
      returning job_id
    )
    insert into ${t.storedEvents} (job_id, ts, level, event, message, fields)
    select job_id, ${t.now}, 'error', 'job.failed', ${error}::text, '{"error_code": "lock_conflict"}' from failed`,
  )
}

async function recordChained(
  db: Db,
  from: { jobId: string; attemptId: string },
  submissions: readonly Submission[],
  answers: readonly Submitted[],
  eventIds: readonly bigint[],
): Promise<void> {
  const { t } = db
  const fields = answers.map((answer, nth) =>
    JSON.stringify({
      operation: submissions[nth]?.operation,
      ...(answer.submitted
        ? { job_id: answer.jobId }
        : { conflict: answer.why, holder: 'holder' in answer ? answer.holder.jobId : undefined }),
    }),
  )
  await db.query(
    'chain.events',
    sql`insert into ${t.storedEvents} (id, job_id, attempt_id, ts, event, fields)
        select id, ${from.jobId}, ${from.attemptId}, ${t.now}, 'job.chained', fields
          from unnest(${eventIds}::bigint[], ${fields}::jsonb[]) given (id, fields)`,
  )
}
