import type { Context } from '../context.ts'
import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import type { Claimed } from '../lifecycle/claim.ts'
import { countLost } from '../lifecycle/count-lost.ts'
import { fencedBy, type Fence } from '../lifecycle/outcome.ts'

/** What an attempt tried when its fence was found lost. */
export type Verb =
  | 'renew'
  | 'complete'
  | 'fail'
  | 'retry'
  | 'retry_later'
  | 'release'
  | 'defer'
  | 'emit'
  | 'progress'
  | 'step'
  | 'transaction'

// What each settlement leaves behind under its attempt's id, and nothing else does.
const marks = { retry: 'job.retried', release: 'job.released', defer: 'job.deferred' }
const statuses = { complete: 'completed', fail: 'failed' }

/** The error code of a job whose children could not be submitted. */
export const childConflict = 'child_conflict'

/**
 * Of attempts whose settlement found no row: those that had already settled in exactly this way. A report whose answer
 * was lost with the connection is repeated, and is then told that it landed.
 */
export async function alreadySettled(db: Db, verb: Verb, fences: readonly Fence[]): Promise<Set<string>> {
  if (fences.length === 0) return new Set()
  const { t } = db
  const mine = fencedBy(
    fences.map(({ jobId }) => jobId),
    fences.map(({ attemptId }) => attemptId),
  )
  let statement: Sql
  if (verb === 'complete' || verb === 'fail') {
    statement = sql`select attempt_id from ${t.finishedJobs} where ${mine} and status = ${statuses[verb]}`
  } else if (verb === 'retry_later') {
    // One event for all of them, which names the latest.
    statement = sql`
      select attempt.attempt_id from ${t.storedEvents} stored, jsonb_array_elements_text(fields -> 'attempts') attempt (attempt_id)
       where stored.job_id = any(${fences.map(({ jobId }) => jobId)}::uuid[]) and event = 'job.retry_later'
         and attempt.attempt_id = any(${fences.map(({ attemptId }) => attemptId)}::text[])`
  } else if (verb in marks) {
    const event = marks[verb as keyof typeof marks]
    // A deferral that could not have its children has settled too: as a failure with a code that nothing else has.
    const conflict = sql`${verb === 'defer'} and fields ->> 'error_code' = ${childConflict}`
    statement = sql`select attempt_id from ${t.storedEvents} where ${mine} and (event = ${event} or ${conflict})`
  } else {
    return new Set()
  }
  const rows = await db.query<{ attempt_id: string }>(`${verb}.again`, statement)
  return new Set(rows.map((row) => row.attempt_id))
}

/** Leaves a trace of a write that the fence kept out. Only in the events: the job itself is not touched. */
async function recordRejection(db: Db, verb: Verb, fences: readonly Fence[]): Promise<void> {
  const { t } = db
  await db.query(
    `${verb}.rejected`,
    sql`insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
        select stale.job_id, stale.attempt_id, ${t.now}, 'warning', 'job.fence_rejected',
               'A stale attempt tried to ' || ${verb}::text, jsonb_build_object('verb', ${verb}::text)
          from unnest(${fences.map(({ jobId }) => jobId)}::uuid[], ${fences.map(({ attemptId }) => attemptId)}::uuid[])
               stale (job_id, attempt_id)
         where exists (select from ${t.jobs} job where job.job_id = stale.job_id)`,
  )
}

const counted = new WeakSet<Claimed>()

// A renewal and the report of the same attempt may be refused at the same time, and neither sees what the other counts.
async function countOnce(db: Db, refused: readonly Claimed[]): Promise<void> {
  const uncounted = refused.filter((one) => !counted.has(one))
  for (const one of uncounted) counted.add(one)
  try {
    await countLost(db, uncounted)
  } catch (error) {
    for (const one of uncounted) counted.delete(one)
    throw error
  }
}

/** Traces writes that found no row, and counts attempts whose claims were lost; the attempts that are lost. */
export async function reject(
  context: Pick<Context, 'logger' | 'telemetry'> & { readonly database: Db },
  verb: Verb,
  attempts: readonly Claimed[],
): Promise<Set<string>> {
  if (attempts.length === 0) return new Set()
  const { database, logger } = context
  const settled = await alreadySettled(database, verb, attempts)
  const stale = attempts.filter(({ attemptId }) => !settled.has(attemptId))
  if (stale.length > 0) await recordRejection(database, verb, stale)
  if (verb === 'renew' || verb in statuses || verb in marks) await countOnce(database, stale)
  for (const claimed of stale) {
    const { jobId, attemptId, operation } = claimed
    logger.warn({ job_id: jobId, attempt_id: attemptId, operation, verb }, 'writeback_stale_attempt')
    context.telemetry.staleWriteback(operation, verb)
  }
  return new Set(stale.map(({ attemptId }) => attemptId))
}
