import type { Db } from '../database/database.ts'
import { sql, type Sql } from '../database/sql.ts'
import type { Json } from '../json.ts'

/*
 * claim: pending → running, under a fence drawn for this claim alone.
 *
 * One statement. `heads` hops from priority to priority through the claim index, so that for each of them the due jobs
 * are one range of it, in order, with the future ones behind; nothing is sorted and nothing that is not due is read.
 * Two claims never meet on a job (skip locked). Two claims of different jobs of one slot meet on the row of `slots`:
 * the second waits for the first, then finds held_until in the future and leaves its job pending.
 * Lock order: live_jobs (only free rows), slots by key, resource_locks.
 */

/** One attempt at a job, as its claimer was given it. */
export interface Claimed {
  jobId: string
  attemptId: string
  operation: string
  queue: string
  payload: Json
  priority: number
  attempts: number
  maxAttempts: number
  workerId: string
  leaseMs: number
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

interface ClaimedRow {
  job_id: string
  attempt_id: string
  operation: string
  queue: string
  payload: Json
  priority: number
  attempts: number
  max_attempts: number
  waited_ms: number
  lock_key: string | null
  slot_key: string | null
  parent_job_id: string | null
  pipeline_id: string | null
}

/** Claims up to `limit` due jobs of one queue, in the order (priority, run_after, submission). */
export async function claim(db: Db, options: ClaimOptions): Promise<Claimed[]> {
  if (Object.keys(options.leases).length === 0 || options.limit < 1) return []
  const rows = await db.query<ClaimedRow>('claim', claimStatement(db, options, dueOfQueue(db, options)))
  return rows.map((row) => claimedFromRow(row, options))
}

/** Claims one given job if it can be claimed now. */
export async function claimById(
  db: Db,
  jobId: string,
  options: Omit<ClaimOptions, 'queue' | 'limit'>,
): Promise<Claimed | undefined> {
  return (await claimByIds(db, [jobId], options))[0]
}

/** Claims those of the given jobs that can be claimed now. */
export async function claimByIds(
  db: Db,
  jobIds: readonly string[],
  options: Omit<ClaimOptions, 'queue' | 'limit'>,
): Promise<Claimed[]> {
  const rows = await db.query<ClaimedRow>('claim', claimStatement(db, options, dueByIds(db, jobIds, options.leases)))
  return rows.map((row) => claimedFromRow(row, options))
}

/** The statement, for the test that reads its plan. */
export function claimStatement(db: Pick<Db, 't'>, options: Omit<ClaimOptions, 'queue' | 'limit'>, due: Sql): Sql {
  const { t } = db
  const leaseMs = sql`(${JSON.stringify(options.leases)}::jsonb ->> operation)::integer`
  const leaseUntil = sql`${t.now} + ${leaseMs} * interval '1 millisecond'`
  return sql`
    with recursive ${due},
    entered as (
      insert into ${t.slots} as slot (slot_key, job_id, held_until)
      select distinct on (slot_key) slot_key, job_id, ${leaseUntil}
        from due where slot_key is not null
       order by slot_key, nth
      on conflict (slot_key) do update
         set job_id = excluded.job_id, attempt_id = null, held_until = excluded.held_until
       where slot.held_until is null or slot.held_until <= ${t.now}
      returning job_id
    ),
    claimed as (
      update ${t.liveJobs}
         set status = 'running', attempt_id = gen_random_uuid(), attempts = attempts + 1,
             locked_by = ${options.workerId}, locked_at = ${t.now}, lease_until = ${leaseUntil},
             started_at = coalesce(started_at, ${t.now}), started_event_id = ${t.nextEventId}
       where job_id = any(array(select job_id from due where slot_key is null
                                union all select job_id from entered))
         and status = 'pending'
      returning *
    ),
    locked as (
      update ${t.resourceLocks} held set attempt_id = claimed.attempt_id, expires_at = claimed.lease_until
        from claimed
       where held.lock_key = claimed.lock_key and held.job_id = claimed.job_id
    )
    select job_id, attempt_id, operation, queue, payload, priority, attempts, max_attempts,
           extract(epoch from locked_at - run_after)::double precision * 1000 as waited_ms,
           lock_key, slot_key, parent_job_id, pipeline_id
      from claimed
     order by claimed.priority, claimed.run_after, claimed.job_id`
}

/** The due jobs of one queue, locked, as the CTEs `heads` and `due`. */
export function dueOfQueue(db: Pick<Db, 't'>, { queue, leases, limit }: ClaimOptions): Sql {
  const { t } = db
  return sql`
    heads (priority) as (
      (select priority from ${t.liveJobs} where status = 'pending' and queue = ${queue} order by priority limit 1)
      union all
      select (select job.priority from ${t.liveJobs} job
               where job.status = 'pending' and job.queue = ${queue} and job.priority > heads.priority
               order by job.priority limit 1)
        from heads where heads.priority is not null
    ),
    due as (
      select found.job_id, found.slot_key, found.operation, row_number() over () as nth
        from heads
       cross join lateral (
         select job.job_id, job.slot_key, job.operation
           from ${t.liveJobs} job
          where job.status = 'pending' and job.queue = ${queue} and job.priority = heads.priority
            and job.run_after <= ${t.now} and job.operation = any(${Object.keys(leases)}::text[])
            and ${nothingInTheWay(db)}
          order by job.run_after, job.job_id
          limit ${limit}::integer
            for update of job skip locked
       ) found
       where heads.priority is not null and ${claimsAllowed(db)}
       limit ${limit}::integer
    )`
}

function dueByIds(db: Pick<Db, 't'>, jobIds: readonly string[], leases: ClaimOptions['leases']): Sql {
  const { t } = db
  return sql`
    due as (
      select job_id, slot_key, operation, row_number() over () as nth
        from (
          select job.job_id, job.slot_key, job.operation
            from ${t.liveJobs} job
           where job.job_id = any(${jobIds}::uuid[]) and job.status = 'pending' and job.run_after <= ${t.now}
             and job.operation = any(${Object.keys(leases)}::text[])
             and ${nothingInTheWay(db)} and ${claimsAllowed(db)}
           order by job.priority, job.run_after, job.job_id
             for update of job skip locked
        ) found
    )`
}

// A job of a slot waits while another of the slot runs, or while a worker whose job was cancelled may still be at it.
// A job with a lock waits while an earlier attempt of its own, put back by an operator, may still be at work.
function nothingInTheWay({ t }: Pick<Db, 't'>): Sql {
  return sql`
    (job.slot_key is null or (
      not exists (select from ${t.liveJobs} other where other.slot_key = job.slot_key and other.status = 'running')
      and not exists (select from ${t.slots} slot where slot.slot_key = job.slot_key and slot.held_until > ${t.now})))
    and (job.lock_key is null or not exists (
      select from ${t.resourceLocks} held where held.lock_key = job.lock_key and held.expires_at > ${t.now}))`
}

function claimsAllowed({ t }: Pick<Db, 't'>): Sql {
  return sql`not exists (select from ${t.settings} where key = 'drain' and value = 'all')`
}

function claimedFromRow(row: ClaimedRow, { leases, workerId }: Pick<ClaimOptions, 'leases' | 'workerId'>): Claimed {
  return {
    jobId: row.job_id,
    attemptId: row.attempt_id,
    operation: row.operation,
    queue: row.queue,
    payload: row.payload,
    priority: row.priority,
    attempts: row.attempts,
    maxAttempts: row.max_attempts,
    workerId,
    leaseMs: leases[row.operation] as number, // claimed only what is in leases
    waitedMs: row.waited_ms,
    lockKey: row.lock_key ?? undefined,
    slotKey: row.slot_key ?? undefined,
    parentJobId: row.parent_job_id ?? undefined,
    pipelineId: row.pipeline_id ?? undefined,
  }
}
