import { randomUUID } from 'node:crypto'
import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql, type Blanks, type Sql } from '../database/sql.ts'
import type { Json } from '../json.ts'
import { isOpen, ofOpenQueue } from './queues.ts'
import { dueColumns, dueOfQueue, isDue, nothingInTheWay } from './due-jobs.ts'

/*
 * claim: pending → running, under a fence drawn for this claim alone.
 *
 * One statement. due-jobs.ts finds and locks the rows. Two claims never meet on a job (skip locked). Two claims of
 * different jobs of one slot meet on the row of `slots`: the second waits for the first, then finds held_until in the
 * future and leaves its job pending.
 * Lock order: live_jobs (only free rows), slots by key, resource_locks.
 */

/** One attempt at a job, as its claimer was given it. */
export interface Claimed {
  jobId: string
  attemptId: string
  operation: string
  /** The part of the operation that is to run; undefined for its `run`. */
  part?: string | undefined
  queue: string
  payload: Json
  priority: number
  attempts: number
  maxAttempts: number
  workerId: string
  leaseMs: number
  /** How long the attempt may take, from its claim on. */
  timeoutMs: number | undefined
  /** How long it had been due when it was claimed. */
  waitedMs: number
  lockKey: string | undefined
  slotKey: string | undefined
  parentJobId: string | undefined
  pipelineId: string | undefined
}

export interface ClaimOptions {
  queue: string
  /** The operations this worker has handlers for, each with its lease in milliseconds. */
  leases: Readonly<Record<string, number>>
  limit: number
  workerId: string
}

export interface PlainRow {
  job_id: string
  operation: string
  payload: Json
  priority: number
  attempts: number
  max_attempts: number
  timeout_ms: number | null
  waited_ms: number
  parent_job_id: string | null
  pipeline_id: string | null
}

interface ClaimedRow extends PlainRow {
  attempt_id: string
  queue: string
  lock_key: string | null
  slot_key: string | null
}

/** Claims up to `limit` due jobs of one queue, in the order (priority, run_after, submission). */
export async function claim(db: Db, options: ClaimOptions): Promise<Claimed[]> {
  if (Object.keys(options.leases).length === 0 || options.limit < 1) return []
  const rows = await db.query<ClaimedRow>('claim', claimStatement(db, options), usefulMs(options))
  return rows.map((row) => claimedFromRow(row, options))
}

/** Claims those of the given jobs that can be claimed now. */
export async function claimByIds(
  db: Db,
  jobIds: readonly string[],
  options: Omit<ClaimOptions, 'queue' | 'limit'>,
): Promise<Claimed[]> {
  const statement = claimGiven(db.t, { ...claimValues(options), jobIds })
  const rows = await db.query<ClaimedRow>('claim', statement, usefulMs(options))
  return rows.map((row) => claimedFromRow(row, options))
}

/** How long the answer to a claim is worth waiting for: later, the leases of all that it may bring have passed. */
export function usefulMs({ leases }: Pick<ClaimOptions, 'leases'>): number {
  return Math.max(minUsefulMs, ...Object.values(leases))
}

const minUsefulMs = 1_000

/** The statement, for the test that reads its plan. */
export function claimStatement({ t }: Pick<Db, 't'>, options: ClaimOptions): Sql {
  return claimOfQueue(t, { ...options, ...claimValues(options) })
}

export interface Claimer {
  /** Leases by operation, as JSON. */
  leases: string
  operations: readonly string[]
  workerId: string
  fence: string
}

export function claimValues({ leases, workerId }: Pick<ClaimOptions, 'leases' | 'workerId'>): Claimer {
  const fence = randomUUID().slice(0, 19)
  return { leases: JSON.stringify(leases), operations: Object.keys(leases), workerId, fence }
}

export interface OfQueue {
  queue: string
  limit: number
}

const claimOfQueue = form<Relations, Claimer & OfQueue>((t, blanks) =>
  claiming(t, blanks, dueOfQueue(t, blanks, sql`${claimsAllowed(t)} and ${isOpen(t, blanks.queue)}`)),
)

const claimGiven = form<Relations, Claimer & { jobIds: readonly string[] }>((t, blanks) =>
  claiming(t, blanks, dueByIds(t, blanks)),
)

// The rows are found again by where they lie: they are locked, so they stay there and stay pending, and there is no
// index that could be the wrong one.
// Limit: one that changed between the snapshot and the lock is left for the next claim, which whoever changed it calls.
// It must not enter its slot either, which would be shut for a whole lease with nobody in it.
function claiming(t: Relations, claimer: Blanks<Claimer>, due: Sql): Sql {
  const leaseUntil = leaseOf(t, claimer)
  return sql`
    with recursive ${due},
    entered as (
      insert into ${t.slots} as slot (slot_key, job_id, held_until)
      select distinct on (slot_key) slot_key, job_id, ${leaseUntil}
        from due
       where slot_key is not null
         and place = any(array(select job.ctid from ${t.liveJobs} job
                                where job.ctid = any(array(select place from due where slot_key is not null))))
       order by slot_key, priority, run_after, job_id
      on conflict (slot_key) do update
         set job_id = excluded.job_id, attempt_id = null, held_until = excluded.held_until
       where slot.held_until is null or slot.held_until <= ${t.now}
      returning job_id
    ),
    claimed as (
      update ${t.liveJobs} set ${running(t, claimer)}
       where ctid = any(array(select place from due where slot_key is null
                              union all select place from due join entered using (job_id)))
      returning job_id, attempt_id, operation, queue, payload, priority, run_after, attempts, max_attempts, locked_at,
                lease_until, lock_key, slot_key, parent_job_id, pipeline_id, timeout_ms
    ),
    locked as (
      update ${t.resourceLocks} held set attempt_id = claimed.attempt_id, expires_at = claimed.lease_until
        from claimed
       where held.lock_key = claimed.lock_key and held.job_id = claimed.job_id
    )
    select job_id, attempt_id, operation, queue, payload, priority, attempts, max_attempts,
           ${waitedMs} as waited_ms, lock_key, slot_key, parent_job_id, pipeline_id, timeout_ms
      from claimed
     order by claimed.priority, claimed.run_after, claimed.job_id`
}

export const waitedMs = sql`date_part('epoch', locked_at - run_after) * 1000`

function leaseOf(t: Relations, { leases }: Blanks<Claimer>): Sql {
  return sql`${t.now} + (${leases}::jsonb ->> operation)::integer * interval '1 millisecond'`
}

/** The fence that running() gives to a job. */
export function attemptIdOf({ fence }: Claimer, jobId: string): string {
  return fence.replaceAll('-', '') + jobId.slice(16)
}

/**
 * What a claim sets. The fence is random bits drawn for this claim, followed by the job's own: no two claims of a job
 * have the same, and no two jobs of a claim. Drawing all of it for each job takes Postgres four times as long.
 */
export function running(t: Relations, claimer: Blanks<Claimer>): Sql {
  return sql`
    status = 'running', attempt_id = (${claimer.fence} || substr(job_id::text, 20))::uuid, attempts = attempts + 1,
    locked_by = ${claimer.workerId}, locked_at = ${t.now}, lease_until = ${leaseOf(t, claimer)},
    started_at = coalesce(started_at, ${t.now}), started_event_id = ${t.nextEventId}`
}

function dueByIds(t: Relations, { jobIds, operations }: Blanks<Claimer & { jobIds: readonly string[] }>): Sql {
  return sql`
    due as (
      select ${dueColumns}
        from ${t.liveJobs} job
       where job.job_id = any(${jobIds}::uuid[]) and job.status = 'pending' and ${isDue(t)}
         and job.operation = any(${operations}::text[])
         and ${nothingInTheWay(t)} and ${claimsAllowed(t)} and ${ofOpenQueue(t, sql`job.queue`)}
       order by job.priority, job.run_after, job.job_id
         for update of job skip locked
    )`
}

export function claimsAllowed(t: Relations): Sql {
  return sql`not exists (select from ${t.settings} where key = 'drain' and value = 'all')`
}

export function claimedFromRow(
  row: PlainRow & Partial<ClaimedRow>,
  { leases, workerId }: Pick<ClaimOptions, 'leases' | 'workerId'>,
  queue = row.queue as string,
  attemptId = row.attempt_id as string,
): Claimed {
  const slash = row.operation.indexOf('/')
  return {
    jobId: row.job_id,
    attemptId,
    operation: slash < 0 ? row.operation : row.operation.slice(0, slash),
    part: slash < 0 ? undefined : row.operation.slice(slash + 1),
    queue,
    payload: row.payload,
    priority: row.priority,
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
    workerId,
    leaseMs: leases[row.operation] as number, // claimed only what is in leases
    timeoutMs: row.timeout_ms ?? undefined,
    waitedMs: row.waited_ms,
    lockKey: row.lock_key ?? undefined,
    slotKey: row.slot_key ?? undefined,
    parentJobId: row.parent_job_id ?? undefined,
    pipelineId: row.pipeline_id ?? undefined,
  }
}
