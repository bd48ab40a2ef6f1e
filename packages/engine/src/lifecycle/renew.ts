import type { Db } from '../database/database.ts'
import { raw, sql, type Sql } from '../database/sql.ts'
import { dashedId } from '../ids.ts'
import { fencedBy, type Fence } from './outcome.ts'
import { lastLease, timeoutPassed } from './overdue.ts'

/** What a worker needs to know of an attempt to keep it alive. */
export interface Held extends Fence {
  leaseMs: number
  lockKey?: string | undefined
  slotKey?: string | undefined
}

/** How much of a lease a renewal may take: then there is time for another one, on another connection. */
const answerShare = 1 / 4
const minAnswerMs = 1_000

/**
 * renew: one statement for all attempts of a process; the answer is those whose fence is lost.
 *
 * A row that somebody else has locked is skipped rather than waited for, so that one of them cannot make all leases
 * lapse; it still counts as held. An attempt whose job was cancelled is lost, but while its worker keeps renewing, the
 * lock and the slot stay closed: its handler may still be at work on them. So is one past its timeout whose job the sweep
 * fails: from the timeout on, the slot is held in the attempt's own name.
 */
export async function renew(db: Db, held: readonly Held[]): Promise<Fence[]> {
  if (held.length === 0) return []
  const answerMs = Math.max(minAnswerMs, Math.min(...held.map(({ leaseMs }) => leaseMs)) * answerShare)
  const rows = await db.query<{ attempt_id: string }>('renew', renewStatement(db, held), answerMs)
  const still = new Set(rows.map((row) => row.attempt_id))
  return held.filter(({ attemptId }) => !still.has(attemptId)).map(({ jobId, attemptId }) => ({ jobId, attemptId }))
}

/** The statement, for the test that reads its plan. */
export function renewStatement({ t }: Pick<Db, 't'>, held: readonly Held[]): Sql {
  const jobIds = held.map(({ jobId }) => jobId)
  const attemptIds = held.map(({ attemptId }) => attemptId)
  const leases = JSON.stringify(Object.fromEntries(held.map((one) => [dashedId(one.attemptId), one.leaseMs])))
  const leaseOf = (attemptId: Sql) =>
    sql`${t.now} + (${leases}::jsonb ->> ${attemptId}::text)::integer * interval '1 millisecond'`
  const leaseUntil = leaseOf(raw('attempt_id'))
  const current = fencedBy(jobIds, attemptIds)
  return sql`
    with free as (
      select job_id, attempt_id, slot_key, ${timeoutPassed(t)} as late
        from ${t.liveJobs} where ${current} and status = 'running'
       order by job_id for no key update skip locked
    ),
    renewed as (
      update ${t.liveJobs} set lease_until = case when ${timeoutPassed(t)} then ${lastLease} else ${leaseUntil} end
       where job_id = any(array(select job_id from free)) and ${current} and status = 'running'
    ),
    locks as (
      update ${t.resourceLocks} set expires_at = ${leaseUntil}
       where lock_key = any(${held.flatMap(({ lockKey }) => lockKey ?? [])}::text[]) and ${current}
    ),
    slots as (
      update ${t.slots} set held_until = ${leaseUntil}
       where slot_key = any(${held.flatMap(({ slotKey }) => slotKey ?? [])}::text[]) and ${current}
    ),
    late_slots as (
      update ${t.slots} slot set attempt_id = free.attempt_id, held_until = ${leaseOf(raw('free.attempt_id'))}
        from free
       where free.late and slot.slot_key = free.slot_key and slot.job_id = free.job_id and slot.attempt_id is null
    )
    select attempt_id from ${t.liveJobs} where ${current} and status = 'running'`
}
