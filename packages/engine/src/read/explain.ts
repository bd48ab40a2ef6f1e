import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { JobStatus } from './job.ts'

/** One thing that keeps a job from running, or says that it runs. */
export type Reason =
  | { reason: 'finished'; status: JobStatus; completedAt: string }
  | { reason: 'running'; by: string; attemptId: string; until: string }
  | { reason: 'lease_expired'; by: string; at: string }
  | { reason: 'waiting_for_children'; ended: number; total: number }
  | { reason: 'drained' }
  | { reason: 'not_due'; until: string }
  | { reason: 'lock_held'; lockKey: string; jobId: string; attemptId: string; until: string }
  | { reason: 'slot_busy'; slotKey: string; jobId: string; by: string | undefined; until: string | undefined }
  | { reason: 'no_worker'; operation: string }
  | { reason: 'attempts_spent'; attempts: number; maxAttempts: number }
  /** Nothing is in the way: it waits for its turn, behind so many due jobs of its queue. */
  | { reason: 'waiting_its_turn'; ahead: number }

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
  completed_at: string | null
  locked_by: string | null
  attempt_id: string | null
  lease_until: string | null
  lease_passed: boolean | null
  children_total: number | null
  children_ended: number | null
  deferred: boolean
  drained: boolean
  run_after: string
  due: boolean
  attempts: number
  max_attempts: number
  workers: number
  ahead: number
  lock_key: string | null
  lock_job_id: string | null
  lock_attempt_id: string | null
  lock_until: string | null
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
  const [row] = await db.query<ExplainRow>(
    'explain',
    sql`
    select job.status, job.operation, job.completed_at, job.locked_by, job.attempt_id, job.lease_until,
           job.lease_until <= ${t.now} as lease_passed, job.children_total,
           job.children_completed + job.children_failed as children_ended, job.deferred_at is not null as deferred,
           exists (select from ${t.settings} where key = 'drain' and value = 'all') as drained,
           job.run_after, job.run_after <= ${t.now} as due, job.attempts, job.max_attempts,
           (select count(*) from ${t.workers} w where job.operation = any(w.operations)
               and w.seen_at > ${t.now} - ${workerSilentSeconds} * interval '1 second')::integer as workers,
           (select count(*) from (
              select from ${t.liveJobs} other
               where other.status = 'pending' and other.queue = job.queue and other.run_after <= ${t.now}
                 and (other.priority, other.run_after, other.job_id) < (job.priority, job.run_after, job.job_id)
               limit ${aheadLimit}) others)::integer as ahead,
           job.lock_key, held.job_id as lock_job_id, held.attempt_id as lock_attempt_id, held.expires_at as lock_until,
           job.slot_key, coalesce(busy.job_id, slot.job_id) as slot_job_id, busy.locked_by as slot_by,
           coalesce(busy.lease_until, slot.held_until) as slot_until
      from ${t.jobs} job
      left join ${t.resourceLocks} held on held.lock_key = job.lock_key and held.expires_at > ${t.now}
      left join ${t.liveJobs} busy on busy.slot_key = job.slot_key and busy.status = 'running'
      left join ${t.slots} slot on slot.slot_key = job.slot_key and slot.held_until > ${t.now}
     where job.job_id = ${jobId} and job.deleted_at is null`,
  )
  if (row === undefined) return undefined
  const reasons = reasonsOf(row)
  return { jobId, status: row.status, reasons, message: reasons.map(inWords).join(' ') }
}

function reasonsOf(row: ExplainRow): Reason[] {
  if (row.completed_at !== null) return [{ reason: 'finished', status: row.status, completedAt: row.completed_at }]
  if (row.deferred) {
    return [{ reason: 'waiting_for_children', ended: row.children_ended ?? 0, total: row.children_total ?? 0 }]
  }
  if (row.status === 'running') {
    const by = row.locked_by ?? ''
    const until = row.lease_until ?? ''
    return row.lease_passed
      ? [{ reason: 'lease_expired', by, at: until }]
      : [{ reason: 'running', by, attemptId: row.attempt_id ?? '', until }]
  }
  const reasons: Reason[] = []
  if (row.attempts >= row.max_attempts) {
    reasons.push({ reason: 'attempts_spent', attempts: row.attempts, maxAttempts: row.max_attempts })
  }
  if (row.drained) reasons.push({ reason: 'drained' })
  if (row.workers === 0) reasons.push({ reason: 'no_worker', operation: row.operation })
  if (row.lock_key !== null && row.lock_job_id !== null) {
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
  if (reasons.length === 0) reasons.push({ reason: 'waiting_its_turn', ahead: row.ahead })
  return reasons
}

function inWords(reason: Reason): string {
  switch (reason.reason) {
    case 'finished':
      return `It ended as ${reason.status} at ${reason.completedAt}.`
    case 'running':
      return `It is being run by ${reason.by}, whose lease lasts until ${reason.until}.`
    case 'lease_expired':
      return `Its worker ${reason.by} has been silent since its lease passed at ${reason.at}; the next sweep puts it back.`
    case 'waiting_for_children':
      return `It waits for its children: ${reason.ended} of ${reason.total} have ended.`
    case 'drained':
      return 'Claims are drained: nothing is started until drain is turned off.'
    case 'not_due':
      return `It is not due before ${reason.until}.`
    case 'lock_held':
      return `An earlier attempt may still be at work on ${reason.lockKey}, until ${reason.until} at the latest.`
    case 'slot_busy':
      return `Its slot ${reason.slotKey} is busy with job ${reason.jobId}${reason.by ? `, run by ${reason.by}` : ''}.`
    case 'no_worker':
      return `No worker that has been seen lately runs the operation ${reason.operation}.`
    case 'attempts_spent':
      return `All ${reason.maxAttempts} attempts are spent.`
    case 'waiting_its_turn':
      return reason.ahead === 0
        ? 'Nothing is in the way: it is next.'
        : `Nothing is in the way: ${reason.ahead}${reason.ahead === aheadLimit ? ' or more' : ''} due jobs are ahead of it.`
  }
}
