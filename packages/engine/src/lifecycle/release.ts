import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql } from '../database/sql.ts'
import { byAttempt, endedByFence, fenceValues, ifKeys, keysOf, type FenceValues, type Settling } from './finish.ts'
import type { Fence, WrittenRow } from './outcome.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'

export interface Release extends Settling {
  reason: string
}

/**
 * release: running → pending because the worker is going away, or has no handler free; the job keeps its place in
 * the order, and the attempt is given back. One statement for a whole batch; the attempts that still held their fence are returned.
 */
export async function release(db: Db, releases: readonly Release[]): Promise<WrittenRow[]> {
  if (releases.length === 0) return []
  const given = byAttempt(releases, ({ reason }) => reason)
  return db.query<WrittenRow>('release', releasing(db.t, { ...fenceValues(releases), given }, keysOf(releases)))
}

const releasing = form<Relations, FenceValues & { given: string }>(
  (t, { jobIds, attemptIds, given }, shape) => sql`
    with ${endedByFence({ t }, { jobIds, attemptIds })},
    ${requeueEnded({ t }, { runAfter: sql`run_after`, attempts: sql`attempts - 1` })},
    ${ifKeys(shape, letGoOfEnded({ t }))}
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'job.released', ${given}::jsonb ->> attempt_id::text,
             jsonb_build_object('worker', locked_by)
        from ended
    )
    select attempt_id from ended`,
)

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
