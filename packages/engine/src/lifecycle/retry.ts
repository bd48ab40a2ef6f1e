import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { dashedId } from '../ids.ts'
import type { RetryPolicy } from '../operation.ts'
import { endedByFence } from './finish.ts'
import type { Fence } from './outcome.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'
import type { SettledRow } from './complete.ts'

export interface Retry extends Fence {
  error: string
  errorCode: string
  delayMs: number
}

/**
 * retry: running → pending after an application error, due again after a delay; the attempt is spent. The caller has
 * seen attempts left, and nobody but the holder of the fence can change them; the CHECK on the row is the last word.
 */
export async function retry(db: Db, retries: readonly Retry[]): Promise<SettledRow[]> {
  if (retries.length === 0) return []
  const { t } = db
  const given = JSON.stringify(
    Object.fromEntries(
      retries.map(({ attemptId, error, errorCode, delayMs }) => [
        dashedId(attemptId),
        { error, code: errorCode, delayMs },
      ]),
    ),
  )
  const of = sql`${given}::jsonb -> attempt_id::text`
  const runAfter = sql`${t.now} + (${of} ->> 'delayMs')::integer * interval '1 millisecond'`
  return db.query<SettledRow>(
    'retry',
    sql`
    with ${endedByFence(db, retries)},
    ${requeueEnded(db, { runAfter, attempts: sql`attempts`, error: sql`${of} ->> 'error'`, errorCode: sql`${of} ->> 'code'` })},
    ${letGoOfEnded(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'warning', 'job.retried', ${of} ->> 'error',
             jsonb_build_object('error_code', ${of} ->> 'code', 'delay_ms', ${of} -> 'delayMs', 'attempt', attempts)
        from ended
    )
    select job_id, attempt_id, parent_job_id, pipeline_id from ended`,
  )
}

/** Exponential backoff with jitter: between half and all of first, 2 × first, 4 × first, … up to the maximum. */
export function backoffMs(policy: RetryPolicy, attempts: number, random: () => number = Math.random): number {
  const full = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** Math.min(attempts - 1, 40))
  return Math.round(full * (0.5 + random() / 2))
}
