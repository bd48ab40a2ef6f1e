import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql } from '../database/sql.ts'
import {
  byAttempt,
  fenceValues,
  freeEnded,
  ifKeys,
  insertFinished,
  keysOf,
  removedByFence,
  type FenceValues,
  type Settling,
} from './finish.ts'
import type { WrittenRow } from './outcome.ts'

/*
 * fail: running → failed, for good, by the attempt that holds the fence.
 *
 * One statement for a whole batch. As in complete, the finished record is made from the row that was really deleted. It
 * says when the attempt had started, so the only event that is stored is the failure.
 */

export interface Failure extends Settling {
  error: string
  errorCode: string
  /** What else the event of it says, as fields: where it was thrown, and what caused it. */
  details?: object | undefined
}

/** Fails every attempt that still holds its fence; those are returned. */
export async function fail(db: Db, failures: readonly Failure[]): Promise<WrittenRow[]> {
  if (failures.length === 0) return []
  const given = byAttempt(failures, ({ error, errorCode }) => ({ error, code: errorCode }))
  const details = byAttempt(failures, (one) => one.details)
  return db.query<WrittenRow>('fail', failing(db.t, { ...fenceValues(failures), given, details }, keysOf(failures)))
}

// The details are long and wanted once: apart from the rest, which is looked up several times for every row.
interface Values extends FenceValues {
  given: string
  details: string
}

const failing = form<Relations, Values>((t, { jobIds, attemptIds, given, details }, shape) => {
  const of = sql`${given}::jsonb -> attempt_id::text`
  const error = sql`${of} ->> 'error'`
  const errorCode = sql`${of} ->> 'code'`
  return sql`
    with ${removedByFence(t, { jobIds, attemptIds })},
    ${insertFinished(t, { status: sql`'failed'`, error, errorCode, startedEventId: sql`started_event_id` })},
    ${ifKeys(shape, freeEnded({ t }))}
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'error', 'job.failed', ${error},
             jsonb_build_object('error_code', ${errorCode}, 'attempt', attempts)
               || coalesce(${details}::jsonb -> attempt_id::text, '{}')
        from ended
    )
    select attempt_id from ended`
})
