import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql } from '../database/sql.ts'
import type { RetryPolicy } from '../operation.ts'
import { byAttempt, endedByFence, fenceValues, ifKeys, keysOf, type FenceValues, type Settling } from './finish.ts'
import type { WrittenRow } from './outcome.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'

export interface Retry extends Settling {
  error: string
  errorCode: string
  /** What else the event of it says, as fields: where it was thrown, and what caused it. */
  details?: object | undefined
  delayMs: number
}

/**
 * retry: running → pending after an application error, due again after a delay; the attempt is spent. The caller has
 * seen attempts left, and nobody but the holder of the fence can change them; the CHECK on the row is the last word.
 * One statement for a whole batch; the attempts that still held their fence are returned.
 */
export async function retry(db: Db, retries: readonly Retry[]): Promise<WrittenRow[]> {
  if (retries.length === 0) return []
  const given = byAttempt(retries, ({ error, errorCode, delayMs }) => ({ error, code: errorCode, delayMs }))
  const details = byAttempt(retries, (one) => one.details)
  return db.query<WrittenRow>('retry', retrying(db.t, { ...fenceValues(retries), given, details }, keysOf(retries)))
}

// The details are long and wanted once: apart from the rest, which is looked up several times for every row.
interface Values extends FenceValues {
  given: string
  details: string
}

const retrying = form<Relations, Values>((t, { jobIds, attemptIds, given, details }, shape) => {
  const of = sql`${given}::jsonb -> attempt_id::text`
  const runAfter = sql`${t.now} + (${of} ->> 'delayMs')::integer * interval '1 millisecond'`
  const error = sql`${of} ->> 'error'`
  return sql`
    with ${endedByFence({ t }, { jobIds, attemptIds })},
    ${requeueEnded({ t }, { runAfter, attempts: sql`attempts`, error, errorCode: sql`${of} ->> 'code'` })},
    ${ifKeys(shape, letGoOfEnded({ t }))}
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'warning', 'job.retried', ${error},
             jsonb_build_object('error_code', ${of} ->> 'code', 'delay_ms', ${of} -> 'delayMs', 'attempt', attempts)
               || coalesce(${details}::jsonb -> attempt_id::text, '{}')
        from ended
    )
    select attempt_id from ended`
})

/** Exponential backoff with jitter: between half and all of first, 2 × first, 4 × first, … up to the maximum. */
export function backoffMs(policy: RetryPolicy, attempts: number, random: () => number = Math.random): number {
  const full = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** Math.min(attempts - 1, 40))
  return Math.round(full * (0.5 + random() / 2))
}
