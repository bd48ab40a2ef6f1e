import type { Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import { sql, type Sql } from '../database/sql.ts'
import { finishEnded, freeEnded } from './finish.ts'

/*
 * close: a deferred parent → completed or failed, once its last child has ended.
 *
 * Whoever ends a child calls this after committing, and the sweep calls it for all; the later of two siblings that end
 * together always sees both, and the row lock lets one of the callers do it. The children are counted here from their
 * own finished rows, in the snapshot in which none of them is unfinished: each is one row, so each counts once.
 */

interface ClosedRow {
  job_id: string
  parent_job_id: string | null
  queue: string
  slot_key: string | null
}

/** Told the queue of each closed parent that was in a slot: the next job of the slot can be claimed. */
type SlotFreed = (queue: string) => void

const maxCauses = 3

/** Closes those of the given parents whose children have all ended, then their parents in turn. */
export async function closeParents(
  db: Db,
  parents: Iterable<string | null>,
  slotFreed: SlotFreed = () => {},
): Promise<string[]> {
  const closed: string[] = []
  let ids = [...new Set(parents)].filter((id) => id !== null)
  while (ids.length > 0) {
    const rows = await close(db, sql`job_id = any(${ids}::uuid[])`)
    closed.push(...rows.map((row) => row.job_id))
    for (const { queue, slot_key: slotKey } of rows) if (slotKey !== null) slotFreed(queue)
    ids = [...new Set(rows.map((row) => row.parent_job_id))].filter((id) => id !== null)
  }
  return closed
}

/** Closes every deferred parent that nobody has closed. */
export async function closeAllParents(db: Db, slotFreed: SlotFreed = () => {}): Promise<string[]> {
  const rows = await close(db, sql`status = 'running' and lease_until is null`)
  for (const { queue, slot_key: slotKey } of rows) if (slotKey !== null) slotFreed(queue)
  return [
    ...rows.map((row) => row.job_id),
    ...(await closeParents(
      db,
      rows.map((row) => row.parent_job_id),
      slotFreed,
    )),
  ]
}

async function close(db: Db, which: Sql): Promise<ClosedRow[]> {
  const { t } = db
  const failed = sql`children_failed >= children_fail_at`
  return db.query<ClosedRow>(
    'close',
    sql`
    with waiting as (
      select ${liveJobColumns} from ${t.liveJobs} parent
       where ${which} and deferred_at is not null
         and not exists (select from ${t.liveJobs} child where child.parent_job_id = parent.job_id)
       order by job_id
         for update skip locked
    ),
    ended as (
      select ${liveJobColumns}, children_completed, children_failed
        from waiting
       cross join lateral (
         select (count(*) filter (where status = 'completed'))::integer as children_completed,
                (count(*) filter (where status <> 'completed'))::integer as children_failed
           from ${t.finishedJobs} child where child.parent_job_id = waiting.job_id
       ) counted
    ),
    ${finishEnded(db, {
      status: sql`case when ${failed} then 'failed' else 'completed' end`,
      error: sql`case when ${failed} then children_failed || ' of ' || children_total || ' children failed: '
                      || (${causesOf(db, sql`job.job_id`)}) end`,
      errorCode: sql`case when ${failed} then 'children_failed' end`,
    })},
    ${freeEnded(db)},
    told as (
      insert into ${t.storedEvents} (job_id, ts, level, event, message, fields)
      select job_id, ${t.now}, case when ${failed} then 'error' else 'info' end,
             case when ${failed} then 'job.failed' else 'job.completed' end,
             children_completed || ' of ' || children_total || ' children completed',
             jsonb_strip_nulls(jsonb_build_object(
               'children_completed', children_completed, 'children_failed', children_failed,
               'error_code', case when ${failed} then 'children_failed' end))
        from ended
    )
    select job_id, parent_job_id, queue, slot_key from ended`,
  )
}

// A thousand children often fail for one reason: say each once.
function causesOf({ t }: Db, parent: Sql): Sql {
  return sql`
    select string_agg(cause, '; ' order by cause)
      from (select distinct error_code || ': ' || left(error, 200) as cause
              from ${t.finishedJobs} child
             where child.parent_job_id = ${parent} and child.status <> 'completed'
             order by cause limit ${maxCauses}) causes`
}
