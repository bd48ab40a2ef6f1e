import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import { closeAllParents } from './close.ts'
import { expireOverdue } from './time-out.ts'
import { expireUnstarted, startPassed } from './start-by.ts'
import { expireToFailed, expireToPending, turnOf, type ExpiredRow } from './expire.ts'

/*
 * The sweep: expires attempts, fails jobs that have not started in time, closes deferred parents that nobody has closed,
 * frees locks whose job is gone, and hands over free locks that jobs wait for.
 *
 * Every process sweeps, one statement at a time by advisory lock. It is a row of statements, each a transaction of its
 * own, so a process that vanishes or blocks between two of them holds nothing and keeps nobody from sweeping. Rows that
 * somebody has locked are skipped. The first statement looks for work and notes the time; often it is the only one.
 */

export interface Swept {
  /** Jobs that went back to pending. */
  expired: string[]
  /** Jobs that failed, having no attempt left. */
  failed: string[]
  /** Jobs that failed because their attempt was renewed past its timeout. */
  timedOut: string[]
  /** Jobs that failed because they had not started in time. */
  unstarted: string[]
  /** Deferred parents that nobody had closed. */
  closed: string[]
  /** Locks whose job is gone. */
  freedLocks: string[]
  /** Free locks that jobs waited for: each went to the first of them. */
  handedLocks: string[]
}

export interface SweepOptions {
  /** Do nothing if any process has begun a sweep within this time. */
  unlessWithinMs?: number
}

/** So many attempts in one statement: it takes a fraction of a second, and others can come in between. */
const batch = 2_000

/** One sweep, and the queues in which jobs have become claimable; undefined when another process is, or was, at it. */
export async function sweep(
  db: Db,
  { unlessWithinMs = 0 }: SweepOptions = {},
): Promise<{ swept: Swept; queues: string[] } | undefined> {
  const found = await look(db, unlessWithinMs)
  if (found === undefined) return undefined
  const timedOut = found.expired ? await inBatches((size) => expireOverdue(db, size)) : []
  const unstarted = found.unstarted ? await inBatches((size) => expireUnstarted(db, size)) : []
  const expired = found.expired ? await inBatches((size) => expireToPending(db, size)) : []
  const failed = found.expired ? await inBatches((size) => expireToFailed(db, size)) : []
  const freedSlots = failed.filter(({ slot_key: slotKey }) => slotKey !== null)
  const queues = new Set([...expired, ...freedSlots].map(({ queue }) => queue))
  const closed =
    found.unclosed || failed.length + timedOut.length + unstarted.length > 0
      ? await closeAllParents(db, (queue) => queues.add(queue))
      : []
  const freedLocks = found.orphaned ? await freeOrphanedLocks(db) : []
  const handedLocks = found.unheld ? await handOverLocks(db) : []
  return {
    swept: {
      expired: idsOf(expired),
      failed: idsOf(failed),
      timedOut: idsOf(timedOut),
      unstarted: idsOf(unstarted),
      closed,
      freedLocks,
      handedLocks,
    },
    queues: [...queues],
  }
}

function idsOf(rows: readonly ExpiredRow[]): string[] {
  return rows.map((row) => row.job_id)
}

async function inBatches(some: (size: number) => Promise<ExpiredRow[]>): Promise<ExpiredRow[]> {
  const all: ExpiredRow[] = []
  for (;;) {
    const rows = await some(batch)
    all.push(...rows)
    if (rows.length < batch) return all
  }
}

interface Found {
  expired: boolean
  unstarted: boolean
  unclosed: boolean
  orphaned: boolean
  unheld: boolean
}

// Nobody waits for the disk: a note that is lost in a crash of Postgres costs one more sweep.
async function look(db: Db, unlessWithinMs: number): Promise<Found | undefined> {
  const { t } = db
  // One in the future is none: the clock may have been set back.
  const fresh = sql`select from ${t.sweeps}
                     where begun_at > ${t.now} - ${unlessWithinMs}::bigint * interval '1 millisecond'
                       and begun_at <= ${t.now}`
  const [found] = await db.query<Found>(
    'sweep.look',
    sql`
    with hurry as materialized (select set_config('synchronous_commit', 'off', true)),
    ${turnOf(t)},
    noted as (
      insert into ${t.sweeps} (begun_at)
      select ${t.now} from hurry, turn where mine and not exists (${fresh})
      on conflict (the_only) do update set begun_at = excluded.begun_at
      returning begun_at
    )
    select exists (select from ${t.liveJobs} where status = 'running' and lease_until <= ${t.now}) as expired,
           exists (select from ${t.liveJobs} where ${startPassed(t)}) as unstarted,
           exists (select from ${t.liveJobs} parent
                    where status = 'running' and lease_until is null and deferred_at is not null
                      and not exists (select from ${t.liveJobs} child where child.parent_job_id = parent.job_id))
             as unclosed,
           exists (select from ${t.resourceLocks} held where ${isOrphaned(db)}) as orphaned,
           exists (${unheldLocks(db)}) as unheld
      from noted`,
  )
  return found
}

function isOrphaned({ t }: Pick<Db, 't'>) {
  return sql`(expires_at is null or expires_at <= ${t.now})
             and not exists (select from ${t.liveJobs} job where job.job_id = held.job_id)`
}

/** Frees locks whose job is gone and whose last attempt cannot be at work any more. */
export async function freeOrphanedLocks(db: Db): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ lock_key: string }>(
    'sweep.locks',
    // A lock that a submitter is taking over in a transaction of his is his.
    sql`with ${turnOf(t)},
        orphaned as (
          select lock_key from ${t.resourceLocks} held
           where ${isOrphaned(db)} and (select mine from turn)
             for update skip locked
        )
        delete from ${t.resourceLocks} held
         where lock_key = any(array(select lock_key from orphaned))
        returning lock_key`,
  )
  return rows.map((row) => row.lock_key)
}

// From key to key: what it reads does not grow with the jobs in the lines.
function unheldLocks({ t }: Pick<Db, 't'>): Sql {
  const next = (beyond: Sql) => sql`
    (select lock_key from ${t.liveJobs}
      where waiting_run_after is not null and ${beyond} order by lock_key limit 1)`
  return sql`
    with recursive lines (lock_key) as (
      select ${next(sql`lock_key is not null`)}
      union all
      select ${next(sql`lock_key > lines.lock_key`)} from lines where lines.lock_key is not null
    )
    select lock_key from lines
     where lock_key is not null
       and not exists (select from ${t.resourceLocks} held where held.lock_key = lines.lock_key)`
}

/** Gives free locks to the first of those that wait for them. Only a hand-over that was missed leaves one. */
async function handOverLocks(db: Db): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ lock_key: string }>(
    'sweep.lines',
    sql`with ${turnOf(t)},
        unheld as materialized (select lock_key from (${unheldLocks(db)}) lines where (select mine from turn)),
        handed as materialized (select ${t.handOverLocks}(array(select lock_key from unheld)))
        select lock_key from unheld where exists (select from handed)`,
  )
  return rows.map((row) => row.lock_key)
}
