import type { Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import type { Relations } from '../database/relations.ts'
import { form, raw, sql, type Sql } from '../database/sql.ts'
import { turnOf, type ExpiredRow } from './expire.ts'
import {
  fenceValues,
  finishEnded,
  freeEnded,
  insertFinished,
  rememberStart,
  removedByFence,
  type FenceValues,
  type Settling,
} from './finish.ts'
import type { WrittenRow } from './outcome.ts'
import { isOverdue } from './overdue.ts'

/*
 * time out: running → failed, because the attempt took longer than its timeout, counted from its claim.
 *
 * Its worker does it, when the handler has stopped or a grace after it was told to. A handler that does not stop may
 * still be at work on what its job has locked: the lock and the slot stay with its attempt, which goes on renewing them,
 * until the handler has ended or the worker is gone. A worker that only renews, and never settles, is not trusted for
 * ever: overdue.ts bounds the lease, and the sweep fails the job when that has passed.
 */

export interface TimeOut extends Settling {
  /** True when the handler has not ended: its lock and slot stay closed. */
  handlerRuns: boolean
}

const error = sql`'The attempt took longer than its timeout of ' || timeout_ms || ' ms'`
const errorCode = sql`'timed_out'`

/** Fails every attempt that still holds its fence; those are returned. */
export async function timeOut(db: Db, attempts: readonly TimeOut[]): Promise<WrittenRow[]> {
  const written: WrittenRow[] = []
  for (const keys of ['free', 'hold'] as const) {
    const some = attempts.filter(({ handlerRuns }) => handlerRuns === (keys === 'hold'))
    if (some.length > 0)
      written.push(...(await db.query<WrittenRow>('time_out', timingOut(db.t, fenceValues(some), keys))))
  }
  return written
}

const timingOut = form<Relations, FenceValues>(
  (t, fences, keys) => sql`
    with ${removedByFence(t, fences)},
    ${insertFinished(t, { status: sql`'failed'`, error, errorCode, startedEventId: sql`started_event_id` })},
    ${keys === 'hold' ? holdSlots(t) : freeEnded({ t })},
    ${tellEnded(t)}
    select attempt_id from ended`,
)

/** Fails one batch of attempts whose worker has renewed them past their timeout, and for as long as it may. */
export async function expireOverdue(db: Db, batch: number): Promise<ExpiredRow[]> {
  const { t } = db
  return db.query<ExpiredRow>(
    'sweep.time_out',
    sql`
    with ${turnOf(t)},
    ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where status = 'running' and lease_until <= ${t.now} and ${isOverdue} and (select mine from turn)
       order by lease_until limit ${batch}
         for update skip locked
    ),
    ${finishEnded(db, { status: sql`'failed'`, error, errorCode, attemptId: raw('null::uuid') })},
    ${holdSlots(t)},
    ${rememberStart(db)},
    ${tellEnded(t)}
    select job_id, queue, slot_key from ended`,
  )
}

// As after a cancel. The lock needs nothing: its row is the attempt's until that lets go, or stops renewing it.
function holdSlots(t: Relations): Sql {
  return sql`
    held_slots as (
      update ${t.slots} slot
         set attempt_id = ended.attempt_id, held_until = greatest(slot.held_until, ended.lease_until)
        from ended
       where slot.slot_key = ended.slot_key and slot.job_id = ended.job_id
    )`
}

function tellEnded(t: Relations): Sql {
  return sql`
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, level, event, message, fields
        from (select job_id, attempt_id, 1 as nth, 'warning' as level, 'job.timed_out' as event, null as message,
                     jsonb_build_object('worker', locked_by, 'timeout_ms', timeout_ms, 'attempt', attempts) as fields
                from ended
              union all
              select job_id, attempt_id, 2, 'error', 'job.failed', ${error},
                     jsonb_build_object('error_code', ${errorCode}, 'attempt', attempts)
                from ended) events
       order by job_id, nth
    )`
}
