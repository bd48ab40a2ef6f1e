import type { Database, Db } from '../database/database.ts'
import { liveJobColumns } from '../database/live-job-columns.ts'
import { sql } from '../database/sql.ts'
import { closeAllParents, closeParents } from './close.ts'
import { finishEnded, freeEnded, rememberStart } from './finish.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'

/*
 * expire, the sweep: a running attempt whose lease has passed → pending while attempts are left, else failed.
 *
 * Every process sweeps, one at a time by advisory lock. Each step locks what it reads and changes it in the same
 * statement, so a completion that lands first is waited out or skipped, never overwritten. A row that somebody holds is
 * left for the next sweep: it is being settled, or its handler has a transaction open under its fence.
 */

export interface Swept {
  /** Jobs that went back to pending. */
  expired: string[]
  /** Jobs that failed, having no attempt left. */
  failed: string[]
  /** Deferred parents that nobody had closed. */
  closed: string[]
  /** Locks whose job is gone. */
  freedLocks: string[]
}

const batch = 1000

const expiredEvents = sql`
  select job_id, attempt_id, 1 as nth, 'warning' as level, 'job.expired' as event, 'The worker fell silent' as message,
         jsonb_build_object('worker', locked_by, 'lease_until', lease_until, 'attempt', attempts) as fields
    from ended`

/** One sweep; undefined when another process is at it. */
export async function sweep(database: Database): Promise<Swept | undefined> {
  return database.transaction('sweep', async (db) => {
    const [lock] = await db.query<{ mine: boolean }>(
      'sweep.lock',
      sql`select pg_try_advisory_xact_lock(hashtext(${`fencepost.sweep.${db.t.schema}`})) as mine`,
    )
    if (lock?.mine !== true) return undefined
    const expired = await expireToPending(db)
    const failed = await expireToFailed(db)
    return {
      expired,
      failed: failed.map((row) => row.job_id),
      closed: [
        ...(await closeParents(
          db,
          failed.map((row) => row.parent_job_id),
        )),
        ...(await closeAllParents(db)),
      ],
      freedLocks: await freeOrphanedLocks(db),
    }
  })
}

/** The queues that these jobs are in. */
export async function queuesOf(db: Db, jobIds: readonly string[]): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ queue: string }>(
    'sweep.queues',
    sql`select distinct queue from ${t.liveJobs} where job_id = any(${jobIds}::uuid[])`,
  )
  return rows.map((row) => row.queue)
}

async function expireToPending(db: Db): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ job_id: string }>(
    'sweep.expire',
    sql`
    with ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where status = 'running' and lease_until <= ${t.now} and attempts < max_attempts
       order by job_id limit ${batch}
         for update skip locked
    ),
    ${requeueEnded(db, { runAfter: t.now, attempts: sql`attempts` })},
    ${letGoOfEnded(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, level, event, message, fields from (${expiredEvents}) events
    )
    select job_id from ended`,
  )
  return rows.map((row) => row.job_id)
}

async function expireToFailed(db: Db): Promise<{ job_id: string; parent_job_id: string | null }[]> {
  const { t } = db
  return db.query(
    'sweep.fail',
    sql`
    with ended as (
      select ${liveJobColumns} from ${t.liveJobs}
       where status = 'running' and lease_until <= ${t.now} and attempts >= max_attempts
       order by job_id limit ${batch}
         for update skip locked
    ),
    ${finishEnded(db, {
      status: sql`'failed'`,
      error: sql`'The worker ' || locked_by || ' fell silent, and no attempt is left'`,
      errorCode: sql`'lease_expired'`,
      attemptId: sql`null::uuid`,
    })},
    ${freeEnded(db)},
    ${rememberStart(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, level, event, message, fields
        from (${expiredEvents}
              union all
              select job_id, attempt_id, 2, 'error', 'job.failed', 'No attempt is left',
                     jsonb_build_object('error_code', 'lease_expired', 'attempt', attempts)
                from ended) events
       order by job_id, nth
    )
    select job_id, parent_job_id from ended`,
  )
}

async function freeOrphanedLocks(db: Db): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ lock_key: string }>(
    'sweep.locks',
    sql`delete from ${t.resourceLocks} held
         where (expires_at is null or expires_at <= ${t.now})
           and not exists (select from ${t.liveJobs} job where job.job_id = held.job_id)
        returning lock_key`,
  )
  return rows.map((row) => row.lock_key)
}
