import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { identifier, join, raw, sql, type Sql } from '../database/sql.ts'
import type { Submission } from './submission.ts'

/*
 * submit: (nothing) → pending.
 *
 * Without keys a submission is one insert. With a lock or dedup key it is a few statements of one transaction: take
 * the locks, insert what got its lock, give back the locks of what a dedup key kept out, look up who is in the way.
 * Lock order: resource_locks by lock key, then live_jobs by dedup key. A conflict with a transaction that is still open
 * waits for its end, so two batches that took their keys in different orders could wait for each other.
 */

/** What became of one submission. */
export type Submitted =
  | { submitted: true; jobId: string }
  /** Another job holds the lock; `attemptId` names its attempt while one is, or may be, at work. */
  | { submitted: false; why: 'locked'; lockKey: string; holder: { jobId: string; attemptId: string | undefined } }
  /** Another job with this dedup key is pending or running. */
  | { submitted: false; why: 'duplicate'; dedupKey: string; holder: { jobId: string } }
  /** New work is refused; see drain. */
  | { submitted: false; why: 'drained' }

/** Where jobs come from: submitted from outside, or made by a running job. */
export type Origin =
  | { from: 'submitter' }
  | { from: 'parent'; parentJobId: string; pipelineId: string | undefined }
  | { from: 'chain'; pipelineId: string }

/** True when a submission takes more than one statement. */
export function isKeyed({ lockKey, dedupKey }: Submission): boolean {
  return lockKey !== undefined || dedupKey !== undefined
}

/** Writes the submissions, in order; the answers are in the same order. Runs inside whatever transaction `db` is. */
export async function insertSubmissions(
  db: Db,
  submissions: readonly Submission[],
  origin: Origin,
  tries = 5,
): Promise<Submitted[]> {
  if (submissions.length === 0) return []
  const [only] = submissions
  if (!db.prepared && origin.from === 'submitter' && submissions.length === 1 && only !== undefined && !isKeyed(only)) {
    return [answerOf(await submitJob(db, only))]
  }
  if (!submissions.some(isKeyed)) {
    const jobIds = await insertJobs(db, submissions, undefined, origin)
    return submissions.map((_, nth) => answerOf(jobIds[nth]))
  }
  if (origin.from === 'submitter' && (await refusesSubmissions(db))) return submissions.map(() => answerOf(undefined))
  const ids = await drawIds(db, submissions.length)
  const rows = submissions.map((submission, nth) => ({ submission, jobId: ids[nth] as string }))
  const locked = await takeLocks(db, rows)
  const allowed = rows.filter(({ submission, jobId }) => submission.lockKey === undefined || locked.has(jobId))
  const inserted = new Set(
    await insertJobs(
      db,
      allowed.map(({ submission }) => submission),
      allowed.map(({ jobId }) => jobId),
      origin,
    ),
  )
  await giveBackLocks(
    db,
    allowed.filter(({ jobId }) => locked.has(jobId) && !inserted.has(jobId)),
  )
  const answers: Submitted[] = []
  for (const { submission, jobId } of rows) {
    const answer: Submitted | undefined = inserted.has(jobId)
      ? { submitted: true, jobId }
      : await conflictOf(db, submission, locked.has(jobId))
    if (answer !== undefined) answers.push(answer)
    else if (tries > 1) answers.push(...(await insertSubmissions(db, [submission], origin, tries - 1)))
    else throw new Error(`The keys of a ${submission.operation} job change hands faster than they can be looked at.`)
  }
  return answers
}

// Without keys nothing but drain keeps a job out, and it keeps out all of them.
function answerOf(jobId: string | undefined): Submitted {
  return jobId === undefined ? { submitted: false, why: 'drained' } : { submitted: true, jobId }
}

/** By a function of the schema, which keeps its plan where a statement cannot: half the time of the insert by itself. */
async function submitJob(db: Db, submission: Submission): Promise<string | undefined> {
  const { t } = db
  const { operation, queue, payload, priority, runAfter, delayMs, maxAttempts, slotKey, pipelineId, by, tags } =
    submission
  const [row] = await db.query<{ job_id: string | null }>(
    'submit.jobs',
    sql`select ${t.submitJob}(${operation}, ${queue}, ${payload}, ${priority}, ${runAfter ?? null}, ${delayMs}, ${maxAttempts},
                              ${slotKey ?? null}, ${pipelineId ?? null}, ${by ?? null}, ${tags ?? null}, null, null, null)
                              as job_id`,
  )
  return row?.job_id ?? undefined
}

/** True when new work is refused, at either level of drain. Children and chained jobs are not new work. */
async function refusesSubmissions(db: Db): Promise<boolean> {
  const rows = await db.query('submit.drain', sql`select where not ${submissionsAllowed(db.t)}`)
  return rows.length > 0
}

export function submissionsAllowed(t: Relations): Sql {
  return sql`not exists (select from ${t.settings} where key = 'drain' and value <> 'off')`
}

async function drawIds(db: Db, count: number): Promise<string[]> {
  const { t } = db
  const rows = await db.query<{ job_id: string }>(
    'submit.ids',
    sql`select ${t.newJobId}(${t.now}, nth) as job_id from generate_series(1, ${count}::integer) nth order by nth`,
  )
  return rows.map((row) => row.job_id)
}

async function takeLocks(db: Db, rows: readonly { submission: Submission; jobId: string }[]): Promise<Set<string>> {
  const wanted = new Map<string, string>() // of several jobs that want one lock, the first gets it
  for (const { submission, jobId } of rows) {
    if (submission.lockKey !== undefined && !wanted.has(submission.lockKey)) wanted.set(submission.lockKey, jobId)
  }
  const taken = await insertLocks(db, wanted)
  const missed = [...wanted].filter(([, jobId]) => !taken.has(jobId))
  if (
    missed.length === 0 ||
    !(await freeLapsedLocks(
      db,
      missed.map(([lockKey]) => lockKey),
    ))
  )
    return taken
  return new Set([...taken, ...(await insertLocks(db, new Map(missed)))])
}

// `do nothing` and not `do update … where`, which would lock the holder's row even where it changes nothing: a caller
// that keeps his transaction open would then stop the holder from renewing and from ending.
async function insertLocks(db: Db, wanted: ReadonlyMap<string, string>): Promise<Set<string>> {
  if (wanted.size === 0) return new Set()
  const { t } = db
  const taken = await db.query<{ job_id: string }>(
    'submit.locks',
    sql`insert into ${t.resourceLocks} (lock_key, job_id, acquired_at)
        select lock_key, job_id, ${t.now}
          from unnest(${[...wanted.keys()]}::text[], ${[...wanted.values()]}::uuid[]) wanted (lock_key, job_id)
         order by lock_key
        on conflict (lock_key) do nothing
        returning job_id`,
  )
  return new Set(taken.map((row) => row.job_id))
}

/** Frees locks whose lease has passed and whose job is gone. While a job lives, its lock is its own, lapsed or not. */
async function freeLapsedLocks(db: Db, lockKeys: readonly string[]): Promise<boolean> {
  const { t } = db
  const freed = await db.query(
    'submit.lapsed_locks',
    sql`with lapsed as (
          select lock_key, job_id from ${t.resourceLocks} held
           where lock_key = any(${lockKeys}::text[]) and expires_at <= ${t.now}
             and not exists (select from ${t.liveJobs} job where job.job_id = held.job_id)
           order by lock_key
             for update
        )
        delete from ${t.resourceLocks}
         where lock_key = any(array(select lock_key from lapsed)) and job_id = any(array(select job_id from lapsed))
        returning lock_key`,
  )
  return freed.length > 0
}

async function insertJobs(
  db: Db,
  submissions: readonly Submission[],
  ids: readonly string[] | undefined,
  origin: Origin,
): Promise<string[]> {
  if (submissions.length === 0) return []
  const { t } = db
  const { select, from } =
    submissions.length === 1 ? columnsOfOne(submissions[0] as Submission, ids) : columnsOf(submissions, ids)
  const allowed = origin.from === 'submitter' ? submissionsAllowed(t) : sql`true`
  // Only where it can matter: an insert that may conflict costs more.
  const deduplicates = submissions.some(({ dedupKey }) => dedupKey !== undefined)
  const inOrder = deduplicates && submissions.length > 1 ? sql`order by ${select.dedupKey}, ${select.nth}` : sql``
  const onConflict = deduplicates ? sql`on conflict (dedup_key) where dedup_key is not null do nothing` : sql``
  const parentJobId = origin.from === 'parent' ? origin.parentJobId : null
  const pipelineId = origin.from === 'submitter' ? null : (origin.pipelineId ?? null)
  const insert = sql`
    insert into ${t.liveJobs} (job_id, operation, queue, payload, priority, run_after, max_attempts, lock_key,
                               slot_key, dedup_key, parent_job_id, pipeline_id, submitted_at, submitted_by, tags)
    select ${ids === undefined ? sql`${t.newJobId}(${t.now}, ${select.nth})` : select.jobId},
           ${select.operation}, ${select.queue}, ${select.payload}, ${select.priority},
           coalesce(${select.runAfter}, ${t.now} + ${select.delayMs} * interval '1 millisecond'),
           ${select.maxAttempts}, ${select.lockKey}, ${select.slotKey}, ${select.dedupKey}, ${parentJobId}::uuid,
           coalesce(${select.pipelineId}, ${pipelineId}::uuid), ${t.now}, ${select.by},
           ${select.tags}::text[]
      ${from}
     where ${allowed}
     ${inOrder}
    ${onConflict}
    returning job_id`
  if (submissions.length === 1) {
    const rows = await db.query<{ job_id: string }>('submit.jobs', insert)
    return rows.map((row) => row.job_id)
  }
  const rows = await db.query<{ job_ids: string }>(
    'submit.jobs',
    sql`with inserted as (${insert})
        select coalesce(string_agg(replace(job_id::text, '-', ''), '' order by job_id), '') as job_ids from inserted`,
  )
  return rows[0]?.job_ids.match(/.{32}/g) ?? []
}

const columnTypes = {
  operation: 'text',
  queue: 'text',
  priority: 'integer',
  runAfter: 'timestamptz',
  delayMs: 'integer',
  maxAttempts: 'integer',
  lockKey: 'text',
  slotKey: 'text',
  dedupKey: 'text',
  pipelineId: 'uuid',
  tags: 'text',
  by: 'text',
} as const satisfies Record<keyof Omit<Submission, 'payload'>, string>

type Column = keyof typeof columnTypes
const columns = Object.keys(columnTypes) as Column[]

/** What to select for the new rows, and from where. */
interface Given {
  select: Record<Column | 'jobId' | 'payload' | 'nth', Sql>
  from: Sql
}

/** One submission is a row of parameters: it is planned in half the time, which counts where it is planned every time. */
function columnsOfOne(submission: Submission, ids: readonly string[] | undefined): Given {
  const one = columns.map((column) => [column, sql`${submission[column] ?? null}::${raw(columnTypes[column])}`])
  const select = {
    ...(Object.fromEntries(one) as Record<Column, Sql>),
    jobId: sql`${ids?.[0] ?? null}::uuid`,
    payload: sql`${submission.payload}::jsonb`,
    nth: raw('1'),
  }
  return { select, from: sql`` }
}

/** The submissions as a relation. Payloads are one JSON array, and what is the same for all of them is sent once. */
function columnsOf(submissions: readonly Submission[], ids: readonly string[] | undefined): Given {
  const [first] = submissions as readonly [Submission]
  const functions = [sql`jsonb_array_elements(${`[${submissions.map(({ payload }) => payload).join(',')}]`}::jsonb)`]
  const names = [raw('payload')]
  if (ids !== undefined) {
    functions.push(sql`unnest(${ids}::uuid[])`)
    names.push(raw('job_id'))
  }
  const select: Given['select'] = { jobId: raw('job_id'), payload: raw('payload'), nth: raw('nth') } as Given['select']
  for (const column of columns) {
    const type = columnTypes[column]
    if (submissions.every((submission) => submission[column] === first[column])) {
      select[column] = sql`${first[column] ?? null}::${raw(type)}`
    } else {
      const values = submissions.map((submission) => submission[column] ?? null)
      functions.push(sql`unnest(${values}::${raw(type)}[])`)
      names.push(identifier(column))
      select[column] = identifier(column)
    }
  }
  const from = sql`from rows from (${join(functions, ', ')}) with ordinality given (${join([...names, raw('nth')], ', ')})`
  return { select, from }
}

async function giveBackLocks(db: Db, rows: readonly { submission: Submission; jobId: string }[]): Promise<void> {
  if (rows.length === 0) return
  const { t } = db
  await db.query(
    'submit.give_back_locks',
    sql`delete from ${t.resourceLocks}
         where lock_key = any(${rows.map(({ submission }) => submission.lockKey)}::text[])
           and job_id = any(${rows.map(({ jobId }) => jobId)}::uuid[])`,
  )
}

/** Who was in the way; undefined if the holder ended between the conflict and this look, and the key is free again. */
async function conflictOf(db: Db, submission: Submission, hadLock: boolean): Promise<Submitted | undefined> {
  const { t } = db
  const { lockKey, dedupKey } = submission
  if (lockKey !== undefined && !hadLock) {
    const [holder] = await db.query<{ job_id: string; attempt_id: string | null }>(
      'submit.lock_holder',
      sql`select job_id, attempt_id from ${t.resourceLocks} where lock_key = ${lockKey}`,
    )
    if (holder === undefined) return undefined
    const { job_id: jobId, attempt_id: attemptId } = holder
    return { submitted: false, why: 'locked', lockKey, holder: { jobId, attemptId: attemptId ?? undefined } }
  }
  if (dedupKey === undefined) return undefined
  const [holder] = await db.query<{ job_id: string }>(
    'submit.dedup_holder',
    sql`select job_id from ${t.liveJobs} where dedup_key = ${dedupKey}`,
  )
  if (holder === undefined) return undefined
  return { submitted: false, why: 'duplicate', dedupKey, holder: { jobId: holder.job_id } }
}
