import type { Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import { sql, type Sql } from '../database/sql.ts'
import { finishEnded, freeEnded } from './finish.ts'
import { continuing } from './requeue.ts'

/*
 * close: a deferred parent → completed or failed, once its last child has ended; or → pending, to run its next part.
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
  continued: boolean
}

/** Told the queue of each parent that goes on, or was in a slot: it, or the next job of the slot, can be claimed. */
type Claimable = (queue: string) => void

const maxCauses = 3

/** Closes those of the given parents whose children have all ended, or lets them go on; then their parents in turn. */
export async function closeParents(
  db: Db,
  parents: Iterable<string | null>,
  claimable: Claimable = () => {},
): Promise<string[]> {
  const closed: string[] = []
  let ids = [...new Set(parents)].filter((id) => id !== null)
  while (ids.length > 0) {
    const rows = await close(db, sql`job_id = any(${ids}::uuid[])`)
    closed.push(...rows.map((row) => row.job_id))
    tell(rows, claimable)
    ids = [...new Set(parentsOf(rows))].filter((id) => id !== null)
  }
  return closed
}

/** Closes every deferred parent that nobody has closed. */
export async function closeAllParents(db: Db, claimable: Claimable = () => {}): Promise<string[]> {
  const rows = await close(db, sql`status = 'running' and lease_until is null`)
  tell(rows, claimable)
  return [...rows.map((row) => row.job_id), ...(await closeParents(db, parentsOf(rows), claimable))]
}

function tell(rows: readonly ClosedRow[], claimable: Claimable): void {
  for (const { queue, slot_key: slotKey, continued } of rows) if (continued || slotKey !== null) claimable(queue)
}

function parentsOf(rows: readonly ClosedRow[]): (string | null)[] {
  return rows.filter(({ continued }) => !continued).map((row) => row.parent_job_id)
}

async function close(db: Db, which: Sql): Promise<ClosedRow[]> {
  const { t } = db
  const failed = sql`(children_failed >= children_fail_at)`
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
    counted as (
      select ${liveJobColumns}, children_completed, children_failed,
             next_part is not null and not ${failed} as continued
        from waiting
       cross join lateral (
         select (count(*) filter (where status = 'completed'))::integer as children_completed,
                (count(*) filter (where status <> 'completed'))::integer as children_failed
           from ${t.finishedJobs} child where child.parent_job_id = waiting.job_id
       ) numbers
       -- A parent that another process let go on meanwhile may wait for new children, which this snapshot does not have.
       where children_completed + children_failed >= children_total
    ),
    ended as (
      select ${liveJobColumns}, children_completed, children_failed from counted where not continued
    ),
    continued as (
      update ${t.liveJobs} set ${continuing(t, sql`next_part`)}
       where job_id = any(array(select job_id from counted where continued))
    ),
    told_continued as (
      insert into ${t.storedEvents} (job_id, ts, event, message, fields)
      select job_id, ${t.now}, 'job.continued', children_completed || ' of ' || children_total || ' children completed',
             jsonb_build_object('part', next_part, 'children_completed', children_completed,
                                'children_failed', children_failed)
        from counted where continued
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
    select job_id, parent_job_id, queue, slot_key, continued from counted`,
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
