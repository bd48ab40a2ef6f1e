import type { Database, Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import { sql } from '../database/sql.ts'
import { finishEnded, rememberStart } from './finish.ts'
import type { Fence } from './outcome.ts'

/*
 * cancel: pending or running → cancelled, with all that descends from it.
 *
 * The fence goes with the row, so whatever the worker still reports finds nothing. A running job's lock and slot stay
 * with its attempt until that attempt lets go or its lease passes: cancelling stops the job, not yet the worker.
 * Lock order: jobs by id, which is parents first. The rows are locked in a statement of their own: whoever had them may
 * have changed their locks and slots too, and only a statement begun after that sees it. A coordinator may be making
 * children at this moment; they show up once its row is ours, so the search is repeated until it finds none. Nobody can
 * make more: that needs the fence.
 */

export type Cancelled =
  | { cancelled: true; jobIds: string[] }
  | { cancelled: false; why: 'not_found' }
  | { cancelled: false; why: 'finished'; status: 'completed' | 'failed' | 'cancelled' }

export interface CancelledRows {
  jobIds: string[]
  /** The attempts that were running: their workers are to be told. */
  running: Fence[]
  /** The queues of deferred parents that were in a slot: the next job of the slot can be claimed. */
  freed: string[]
  /** The cancelled rows whose parent was not cancelled with them, and may have waited for just these. */
  orphans: { parent_job_id: string | null }[]
}

interface CancelledRow {
  job_id: string
  attempt_id: string | null
  parent_job_id: string | null
  queue: string
  frees_slot: boolean
}

/** Cancels the given unfinished jobs and their descendants; what is finished or unknown is left alone. */
export async function cancelTrees(
  database: Database,
  roots: readonly string[],
  by: string | undefined,
): Promise<CancelledRows> {
  return database.transaction('cancel', (db) => cancelTreesIn(db, roots, by))
}

/** The same as a part of a transaction. */
export async function cancelTreesIn(db: Db, roots: readonly string[], by: string | undefined): Promise<CancelledRows> {
  const rows: CancelledRow[] = []
  let next: readonly string[] = roots
  while (next.length > 0) {
    rows.push(...(await cancelRows(db, await lockTrees(db, next), by)))
    next = await unfinishedChildren(
      db,
      rows.map((row) => row.job_id),
    )
  }
  const cancelled = new Set(rows.map((row) => row.job_id))
  return {
    jobIds: [...cancelled],
    running: rows.flatMap(({ job_id: jobId, attempt_id: attemptId }) => (attemptId ? [{ jobId, attemptId }] : [])),
    freed: rows.filter((row) => row.frees_slot).map(({ queue }) => queue),
    orphans: rows.filter(({ parent_job_id: parent }) => parent !== null && !cancelled.has(parent)),
  }
}

async function lockTrees(db: Db, roots: readonly string[]): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ job_id: string }>(
    'cancel.lock',
    sql`
    with recursive tree (job_id) as (
      select unnest(${roots}::uuid[])
      union
      select child.job_id from ${t.liveJobs} child join tree on child.parent_job_id = tree.job_id
    )
    select job_id from ${t.liveJobs}
     where job_id = any(array(select job_id from tree))
     order by job_id
       for update`,
  )
  return rows.map((row) => row.job_id)
}

async function cancelRows(db: Db, locked: readonly string[], by: string | undefined): Promise<CancelledRow[]> {
  const { t } = db
  return db.query<CancelledRow>(
    'cancel.jobs',
    sql`
    with ended as (
      select ${liveJobColumns} from ${t.liveJobs} where job_id = any(${locked}::uuid[]) order by job_id
    ),
    ${finishEnded(db, {
      status: sql`'cancelled'`,
      error: sql`'Cancelled by user'`,
      errorCode: sql`'cancelled'`,
      attemptId: sql`null::uuid`,
    })},
    unlocked as (
      delete from ${t.resourceLocks}
       where lock_key = any(array(select lock_key from ended where lock_key is not null))
         and job_id = any(array(select job_id from ended))
         and attempt_id is null
    ),
    held_slots as (
      update ${t.slots} slot
         set attempt_id = ended.attempt_id, held_until = ended.lease_until
        from ended
       where slot.slot_key = ended.slot_key and slot.job_id = ended.job_id and ended.status = 'running'
    ),
    ${rememberStart(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'warning', 'job.cancelled', 'Cancelled by user',
             jsonb_strip_nulls(jsonb_build_object('by', ${by ?? null}::text, 'worker', locked_by))
        from ended
    )
    select job_id, attempt_id, parent_job_id, queue, slot_key is not null and deferred_at is not null as frees_slot
      from ended`,
  )
}

async function unfinishedChildren(db: Db, parents: readonly string[]): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ job_id: string }>(
    'cancel.children',
    sql`select job_id from ${t.liveJobs} where parent_job_id = any(${parents}::uuid[])`,
  )
  return rows.map((row) => row.job_id)
}
