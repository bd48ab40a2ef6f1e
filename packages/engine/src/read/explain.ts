import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import { mayStart } from '../lifecycle/start-by.ts'
import type { JobStatus } from './job.ts'

/** One thing that keeps a job from running, or says that it runs. */
export type Reason =
  | { reason: 'finished'; status: JobStatus; completedAt: string }
  | { reason: 'running'; by: string; attemptId: string; until: string }
  | { reason: 'lease_expired'; by: string; at: string }
  /** An open transaction has locked the job's row: nobody can claim, settle or expire it before that ends. */
  | { reason: 'row_locked'; pid: number | undefined; since: string | undefined }
  /** `then` names the part that runs when they have ended. */
  | { reason: 'waiting_for_children'; ended: number; total: number; then: string | undefined }
  | { reason: 'drained' }
  | { reason: 'queue_paused'; queue: string; by: string | undefined; since: string }
  | { reason: 'not_due'; until: string }
  /** It was to start by this time: the next sweep fails it. */
  | { reason: 'start_by_passed'; at: string }
  | { reason: 'lock_held'; lockKey: string; jobId: string; attemptId: string; until: string }
  /** Another job holds its lock, and so many others wait for it before this one. */
  | { reason: 'waiting_for_lock'; lockKey: string; jobId: string | undefined; ahead: number }
  | { reason: 'slot_busy'; slotKey: string; jobId: string; by: string | undefined; until: string | undefined }
  | { reason: 'no_worker'; operation: string }
  /** Workers run the operation, but none of them claims from this queue. */
  | { reason: 'queue_not_served'; queue: string }
  | { reason: 'attempts_spent'; attempts: number; maxAttempts: number }
  /** Nothing is in the way: it waits for its turn, behind so many due jobs of its queue. */
  | { reason: 'waiting_its_turn'; ahead: number; since: string }

export interface Explanation {
  jobId: string
  status: JobStatus
  /** Everything that is in the way, the most lasting first. */
  reasons: Reason[]
  /** The same in words. */
  message: string
}

interface ExplainRow {
  status: JobStatus
  operation: string
  queue: string
  completed_at: string | null
  locked_by: string | null
  attempt_id: string | null
  lease_until: string | null
  lease_passed: boolean | null
  children_total: number | null
  children_ended: number | null
  deferred: boolean
  next_part: string | null
  drained: boolean
  paused_at: string | null
  paused_by: string | null
  run_after: string
  due: boolean
  start_passed: boolean
  start_by: string | null
  attempts: number
  max_attempts: number
  workers: number
  serving: number
  row_locked: boolean
  row_locked_by: number | null
  row_locked_since: string | null
  ahead: number
  lock_key: string | null
  lock_job_id: string | null
  lock_attempt_id: string | null
  lock_until: string | null
  waits_for_lock: boolean
  lock_holder: string | null
  line_ahead: number
  slot_key: string | null
  slot_job_id: string | null
  slot_by: string | null
  slot_until: string | null
}

// Counting every due job ahead could mean reading a million; nobody needs to know it closer than this.
const aheadLimit = 1000
// A worker that has not been seen for so long has none of its handlers to offer.
const workerSilentSeconds = 60

/** Why a job is not running; undefined where there is no such job. */
export async function explainJob(db: Db, jobId: string): Promise<Explanation | undefined> {
  const { t } = db
  const seenLately = sql`w.seen_at > ${t.now} - ${workerSilentSeconds} * interval '1 second'`
  const [row] = await db.query<ExplainRow>(
    'explain',
    sql`
    with row_lock as (
      ${rowLock(db, jobId)}
    )
    select job.status, job.operation, job.queue, job.completed_at, job.locked_by, job.attempt_id, job.lease_until,
           job.lease_until <= ${t.now} as lease_passed, job.children_total,
           job.children_completed + job.children_failed as children_ended, job.deferred_at is not null as deferred, own.next_part,
           exists (select from ${t.settings} where key = 'drain' and value = 'all') as drained,
           paused.paused_at, paused.paused_by,
           job.run_after, job.run_after <= ${t.now} as due, not ${mayStart(t)} as start_passed, job.start_by, job.attempts, job.max_attempts,
           (select count(*) from ${t.workers} w
             where coalesce(own.operation, job.operation) = any(w.operations) and ${seenLately})::integer as workers,
           (select count(*) from ${t.workers} w
             where coalesce(own.operation, job.operation) = any(w.operations) and ${seenLately}
               and (job.queue = any(w.queues) or w.queues is null))::integer as serving,
           row_lock.locked as row_locked, row_lock.pid as row_locked_by, row_lock.since as row_locked_since,
           (select count(*) from (
              select from ${t.liveJobs} other
               where other.status = 'pending' and other.queue = job.queue and other.run_after <= ${t.now}
                 and (other.priority, other.run_after, other.job_id) < (job.priority, job.run_after, job.job_id)
               limit ${aheadLimit}) others)::integer as ahead,
           job.lock_key, held.job_id as lock_job_id, held.attempt_id as lock_attempt_id, held.expires_at as lock_until,
           job.waits_for_lock, holder.job_id as lock_holder,
           (select count(*) from (
              select from ${t.liveJobs} other
               where job.waits_for_lock and other.lock_key = job.lock_key and other.waiting_run_after is not null
                 and other.job_id < job.job_id
               limit ${aheadLimit}) others)::integer as line_ahead,
           job.slot_key, coalesce(busy.job_id, slot.job_id) as slot_job_id, busy.locked_by as slot_by,
           coalesce(busy.lease_until, slot.held_until) as slot_until
      from ${t.jobs} job
     cross join row_lock
      left join ${t.pausedQueues} paused on paused.queue = job.queue
      left join ${t.resourceLocks} held on held.lock_key = job.lock_key and held.expires_at > ${t.now}
      left join ${t.liveJobs} own on own.job_id = job.job_id
      left join ${t.resourceLocks} holder on holder.lock_key = job.lock_key and job.waits_for_lock
      left join ${t.liveJobs} busy on busy.slot_key = job.slot_key and busy.status = 'running'
      left join ${t.slots} slot on slot.slot_key = job.slot_key and slot.held_until > ${t.now}
     where job.job_id = ${jobId} and job.deleted_at is null`,
  )
  if (row === undefined) return undefined
  const reasons = reasonsOf(row)
  return { jobId, status: row.status, reasons, message: reasons.map(inWords).join(' ') }
}

// The lock that this takes ends with the statement and conflicts only with those of whoever changes or ends the job.
// The process is found where one transaction alone holds the row.
function rowLock({ t }: Db, jobId: string): Sql {
  return sql`
    select held.job_id is not null and free.job_id is null as locked, holder.pid, holder.xact_start as since
      from (values (${jobId}::uuid)) asked (job_id)
      left join lateral (select job_id, xmax from ${t.liveJobs} where job_id = asked.job_id) held on true
      left join lateral (
        select job_id from ${t.liveJobs} where job_id = asked.job_id for key share skip locked
      ) free on true
      left join lateral (
        select activity.pid, activity.xact_start
          from pg_locks lock join pg_stat_activity activity on activity.pid = lock.pid
         where lock.locktype = 'transactionid' and lock.granted and lock.transactionid = held.xmax
         limit 1
      ) holder on free.job_id is null`
}

function reasonsOf(row: ExplainRow): Reason[] {
  if (row.completed_at !== null) return [{ reason: 'finished', status: row.status, completedAt: row.completed_at }]
  if (row.deferred) {
    const { children_ended: ended, children_total: total, next_part: then } = row
    return [{ reason: 'waiting_for_children', ended: ended ?? 0, total: total ?? 0, then: then ?? undefined }]
  }
  if (row.status === 'running') {
    const by = row.locked_by ?? ''
    const until = row.lease_until ?? ''
    if (!row.lease_passed) return [{ reason: 'running', by, attemptId: row.attempt_id ?? '', until }]
    return [{ reason: 'lease_expired', by, at: until }, ...lockedRow(row), ...missingWorkers(row)]
  }
  const reasons: Reason[] = lockedRow(row)
  if (row.attempts >= row.max_attempts) {
    reasons.push({ reason: 'attempts_spent', attempts: row.attempts, maxAttempts: row.max_attempts })
  }
  if (row.start_passed) reasons.push({ reason: 'start_by_passed', at: row.start_by ?? '' })
  if (row.drained) reasons.push({ reason: 'drained' })
  if (row.paused_at !== null) {
    const by = row.paused_by ?? undefined
    reasons.push({ reason: 'queue_paused', queue: row.queue, by, since: row.paused_at })
  }
  reasons.push(...missingWorkers(row))
  if (row.lock_key !== null && row.waits_for_lock) {
    const { lock_key: lockKey, lock_holder: holder, line_ahead: ahead } = row
    reasons.push({ reason: 'waiting_for_lock', lockKey, jobId: holder ?? undefined, ahead })
  } else if (row.lock_key !== null && row.lock_job_id !== null) {
    reasons.push({
      reason: 'lock_held',
      lockKey: row.lock_key,
      jobId: row.lock_job_id,
      attemptId: row.lock_attempt_id ?? '',
      until: row.lock_until ?? '',
    })
  }
  if (row.slot_key !== null && row.slot_job_id !== null) {
    reasons.push({
      reason: 'slot_busy',
      slotKey: row.slot_key,
      jobId: row.slot_job_id,
      by: row.slot_by ?? undefined,
      until: row.slot_until ?? undefined,
    })
  }
  if (!row.due) reasons.push({ reason: 'not_due', until: row.run_after })
  if (reasons.length === 0) {
    reasons.push({ reason: 'waiting_its_turn', ahead: row.ahead, since: row.run_after })
  }
  return reasons
}

function lockedRow(row: ExplainRow): Reason[] {
  if (!row.row_locked) return []
  return [{ reason: 'row_locked', pid: row.row_locked_by ?? undefined, since: row.row_locked_since ?? undefined }]
}

function missingWorkers(row: ExplainRow): Reason[] {
  if (row.workers === 0) return [{ reason: 'no_worker', operation: row.operation }]
  return row.serving === 0 ? [{ reason: 'queue_not_served', queue: row.queue }] : []
}

function inWords(reason: Reason): string {
  switch (reason.reason) {
    case 'finished':
      return `It ended as ${reason.status} at ${reason.completedAt}.`
    case 'running':
      return `It is being run by ${reason.by}, whose lease lasts until ${reason.until}.`
    case 'lease_expired':
      return `Its worker ${reason.by} did not renew the lease, which passed at ${reason.at}; the next sweep puts it back.`
    case 'row_locked': {
      const who = reason.pid === undefined ? '' : ` of the Postgres process ${reason.pid}`
      const since = reason.since === undefined ? '' : `, open since ${reason.since},`
      return `A transaction${who}${since} has locked its row: nothing happens to it before that ends.`
    }
    case 'waiting_for_children':
      return (
        `It waits for its children: ${reason.ended} of ${reason.total} have ended.` +
        (reason.then === undefined ? '' : ` Its part ${reason.then} comes after them.`)
      )
    case 'drained':
      return 'Claims are drained: nothing is started until drain is turned off.'
    case 'queue_paused': {
      const who = reason.by === undefined ? '' : ` by ${reason.by}`
      return `Its queue ${reason.queue} is paused${who} since ${reason.since}.`
    }
    case 'not_due':
      return `It is not due before ${reason.until}.`
    case 'start_by_passed':
      return `It was to start by ${reason.at}; the next sweep fails it.`
    case 'lock_held':
      return `An earlier attempt may still be at work on ${reason.lockKey}, until ${reason.until} at the latest.`
    case 'waiting_for_lock': {
      const { lockKey, jobId, ahead } = reason
      const holder = jobId === undefined ? 'that nobody holds: the next sweep hands it over' : `that job ${jobId} holds`
      const line = ahead === 0 ? 'It is the first in line' : `${atLeast(ahead)} jobs are in line before it`
      return `It waits for the lock ${lockKey}, ${holder}. ${line}.`
    }
    case 'slot_busy':
      return `Its slot ${reason.slotKey} is busy with job ${reason.jobId}${reason.by ? `, run by ${reason.by}` : ''}.`
    case 'no_worker':
      return `No worker that has been seen lately runs the operation ${reason.operation}.`
    case 'queue_not_served':
      return `No worker that has been seen lately claims from the queue ${reason.queue}.`
    case 'attempts_spent':
      return `All ${reason.maxAttempts} attempts are spent.`
    case 'waiting_its_turn':
      return reason.ahead === 0
        ? `Nothing is in the way: it is next, and has been due since ${reason.since}.`
        : `Nothing is in the way: ${atLeast(reason.ahead)} due jobs are ahead of it.`
  }
}

function atLeast(ahead: number): string {
  return `${ahead}${ahead === aheadLimit ? ' or more' : ''}`
}
