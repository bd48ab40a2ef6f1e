import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { SettledRow } from './complete.ts'
import { endedByFence } from './finish.ts'
import type { Fence } from './outcome.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'

/** release: running → pending because the worker is going away; due at once, and the attempt is given back. */
export async function release(db: Db, fences: readonly Fence[], reason: string): Promise<SettledRow[]> {
  if (fences.length === 0) return []
  const { t } = db
  return db.query<SettledRow>(
    'release',
    sql`
    with ${endedByFence(db, fences)},
    ${requeueEnded(db, { runAfter: t.now, attempts: sql`attempts - 1` })},
    ${letGoOfEnded(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'job.released', ${reason}, jsonb_build_object('worker', locked_by)
        from ended
    )
    select job_id, attempt_id, parent_job_id, pipeline_id from ended`,
  )
}

/**
 * Lets go of the lock and slot that an attempt still holds after its job was taken from it (cancelled, or put back by
 * an operator). Only what this very attempt holds: a later attempt of the same job keeps its own. An attempt that still
 * has its fence keeps everything: it settles instead.
 */
export async function letGo(
  db: Db,
  held: Fence & { lockKey: string | undefined; slotKey: string | undefined },
): Promise<void> {
  if (held.lockKey === undefined && held.slotKey === undefined) return
  const { t } = db
  const live = sql`exists (select from ${t.liveJobs} job where job.job_id = ${held.jobId})`
  const current = sql`exists (select from ${t.liveJobs} job
                               where job.job_id = ${held.jobId} and job.attempt_id = ${held.attemptId})`
  const mine = sql`lock_key = ${held.lockKey ?? null} and job_id = ${held.jobId} and attempt_id = ${held.attemptId}`
  await db.query(
    'let_go',
    sql`
    with freed as (
      delete from ${t.resourceLocks} where ${mine} and not ${live}
    ),
    kept as (
      update ${t.resourceLocks} set attempt_id = null, expires_at = null where ${mine} and ${live} and not ${current}
    )
    update ${t.slots} set attempt_id = null, held_until = null
     where slot_key = ${held.slotKey ?? null} and attempt_id = ${held.attemptId}`,
  )
}
