import type { Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import type { Relations } from '../database/relations.ts'
import { raw, sql, type Sql } from '../database/sql.ts'
import { uuidArray } from '../database/types.ts'
import { dashedId } from '../ids.ts'
import { fencedBy, type Fence } from './outcome.ts'

/*
 * The parts that every way out of `running` shares, as CTEs over `ended`: the rows that are to change, locked.
 *
 * Whoever ends an attempt takes its row `for update` (or deletes it). What an attempt does while it lives takes less:
 * renewing and progress update no key, and its own transactions hold the row `for key share`. So renewals pass an open
 * transaction of the handler, and nothing can end the attempt between its fence check and its commit.
 */

/** An attempt that is to be settled. */
export interface Settling extends Fence {
  /** False when its job is known to have neither lock nor slot: its statement then does not look for them. */
  hasKeys: boolean
}

/** The attempts of one batch, as parameters of a statement. */
export interface FenceValues {
  jobIds: unknown
  attemptIds: unknown
}

export function fenceValues(fences: readonly Fence[]): FenceValues {
  return {
    jobIds: uuidArray(fences.map(({ jobId }) => jobId)),
    attemptIds: uuidArray(fences.map(({ attemptId }) => attemptId)),
  }
}

/** The shape of a statement for these attempts: those without keys leave out what only keys need. */
export function keysOf(attempts: readonly Settling[]): 'keys' | 'no keys' {
  return attempts.some(({ hasKeys }) => hasKeys) ? 'keys' : 'no keys'
}

/** CTEs that belong only into a statement for attempts with keys. */
export function ifKeys(shape: string, ctes: Sql): Sql {
  return shape === 'keys' ? sql`${ctes},` : raw('')
}

/** Values by attempt, as JSON. By attempt and not by job: a late report of an earlier attempt may be in the batch. */
export function byAttempt<Item extends Fence>(items: readonly Item[], value: (item: Item) => unknown): string {
  return JSON.stringify(Object.fromEntries(items.map((item) => [dashedId(item.attemptId), value(item)])))
}

/** The rows of the attempts that still hold their fence, locked in id order. */
export function endedByFence({ t }: Pick<Db, 't'>, { jobIds, attemptIds }: FenceValues): Sql {
  return sql`
    ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where ${fencedBy(jobIds, attemptIds)} and status = 'running'
       order by job_id
         for update
    )`
}

/** The same rows, removed: for attempts whose jobs are over. */
export function removedByFence(t: Relations, { jobIds, attemptIds }: FenceValues): Sql {
  return sql`
    ended as (
      delete from ${t.liveJobs}
       where ${fencedBy(jobIds, attemptIds)} and status = 'running'
      returning ${liveJobColumns}
    )`
}

/** The operation of a row of live_jobs, which is followed by the part that the job is at, if any. */
export const operationOf = sql`split_part(operation, '/', 1)`

/** What is written into finished_jobs, as expressions over the row, named `job`. */
interface Finish {
  status: Sql
  error: Sql
  errorCode: Sql
  result?: Sql
  attemptId?: Sql
  /** Given where the finished row itself tells when its attempt had started. */
  startedEventId?: Sql
}

/** Moves `ended` to finished_jobs. */
export function finishEnded({ t }: Pick<Db, 't'>, row: Finish): Sql {
  return sql`
    gone as (
      delete from ${t.liveJobs} where job_id = any(array(select job_id from ended))
    ),
    ${insertFinished(t, row)}`
}

/** Writes `ended`, which is already gone from live_jobs, into finished_jobs. */
export function insertFinished(t: Relations, row: Finish): Sql {
  return sql`
    finished as (
      insert into ${t.finishedJobs} (
        job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts, locked_by,
        locked_at, lock_key, slot_key, dedup_key, parent_job_id, pipeline_id, children_total, deferred_at,
        progress_current, progress_total, result, error, error_code, submitted_at, submitted_by, started_at,
        completed_at, submitted_event_id, started_event_id, tags, timeout_ms, start_by)
      select job.job_id, ${operationOf}, queue, payload, ${row.status}, priority,
             coalesce(waiting_run_after, run_after),
             ${row.attemptId ?? sql`attempt_id`}, attempts, max_attempts, locked_by, locked_at, lock_key, slot_key,
             dedup_key, parent_job_id, pipeline_id, children_total, deferred_at, progress_current, progress_total,
             ${row.result ?? sql`result`}, ${row.error}, ${row.errorCode}, submitted_at, submitted_by, started_at,
             ${t.now}, submitted_event_id, ${row.startedEventId ?? sql`null::bigint`}, tags, timeout_ms, start_by
        from ended job
    )`
}

/** Writes down when the attempts of `ended` had started, which nobody can derive any more once they are over. */
export function rememberStart({ t }: Pick<Db, 't'>): Sql {
  return sql`
    started as (
      insert into ${t.storedEvents} (id, job_id, attempt_id, ts, event, fields)
      select started_event_id, job_id, attempt_id, locked_at, 'job.started',
             jsonb_build_object('worker', locked_by, 'attempt', attempts)
        from ended where started_event_id is not null
    )`
}

/** Frees the locks and slots of `ended`, whose jobs are over. */
export function freeEnded({ t }: Pick<Db, 't'>): Sql {
  return sql`
    unlocked as (
      delete from ${t.resourceLocks}
       where lock_key = any(array(select lock_key from ended where lock_key is not null))
         and (job_id, coalesce(attempt_id, job_id)) in (select job_id, coalesce(attempt_id, job_id) from ended)
    ),
    ${leaveSlots({ t })}`
}

/** Lets the next job of each slot of `ended` in. */
export function leaveSlots({ t }: Pick<Db, 't'>): Sql {
  return sql`
    left_slots as (
      update ${t.slots} set held_until = null, attempt_id = null
       where slot_key = any(array(select slot_key from ended where slot_key is not null))
         and job_id = any(array(select job_id from ended))
    )`
}
