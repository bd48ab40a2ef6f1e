import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { identifier, join, raw, sql, type Sql } from '../database/sql.ts'
import type { Submission } from './submission.ts'
import { farAway, giveBackLocks, recordWaiting, takeLocks, type Row } from './take-locks.ts'

/*
 * submit: (nothing) → pending.
 *
 * Without keys a submission is one insert. With a lock or dedup key it is a few statements of one transaction: take
 * the locks, insert what got its lock, give back the locks of what a dedup key kept out, look up who is in the way.
 * Lock order: resource_locks by lock key (see take-locks.ts), then live_jobs by dedup key. A conflict with a transaction that is still open
 * waits for its end, so two batches that took their keys in different orders could wait for each other.
 */

/** What became of one submission. */
export type Submitted =
  | {
      submitted: true
      jobId: string
      /** Present when another job holds its lock: it is pending, and gets the lock when its turn comes. */
      waitsForLock?: true
    }
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
  const { held, waiting } = await takeLocks(db, rows)
  const insert = async (which: readonly Row[], when: 'due' | 'waiting') =>
    insertJobs(
      db,
      which.map(({ submission }) => submission),
      which.map(({ jobId }) => jobId),
      origin,
      when,
    )
  const allowed = rows.filter(({ submission, jobId }) => submission.lockKey === undefined || held.has(jobId))
  const written = await insert(allowed, 'due')
  const joined = await insert(
    rows.filter(({ jobId }) => waiting.has(jobId)),
    'waiting',
  )
  const inserted = new Set([...written, ...joined])
  await recordWaiting(db, joined)
  await giveBackLocks(
    db,
    allowed.filter(({ jobId }) => held.has(jobId) && !inserted.has(jobId)),
  )
  const answers: Submitted[] = []
  for (const { submission, jobId } of rows) {
    const answer: Submitted | undefined = inserted.has(jobId)
      ? { submitted: true, jobId, ...(waiting.has(jobId) && { waitsForLock: true as const }) }
      : await conflictOf(db, submission, held.has(jobId) || waiting.has(jobId))
    if (answer !== undefined) answers.push(answer)
    else if (tries > 1) answers.push(...(await insertSubmissions(db, [submission], origin, tries - 1)))
    else throw new Error(`The keys of a ${submission.operation} job change hands faster than they can be looked at.`)
  }
  return answers
}

/** The ids of the submitted jobs, in order: undefined for one that was refused, or waits for its lock. */
export function claimableIds(answers: readonly Submitted[]): (string | undefined)[] {
  return answers.map((answer) => (answer.submitted && !answer.waitsForLock ? answer.jobId : undefined))
}

// Without keys nothing but drain keeps a job out, and it keeps out all of them.
function answerOf(jobId: string | undefined): Submitted {
  return jobId === undefined ? { submitted: false, why: 'drained' } : { submitted: true, jobId }
}

/** By a function of the schema, which keeps its plan where a statement cannot: half the time of the insert by itself. */
async function submitJob(db: Db, submission: Submission): Promise<string | undefined> {
  const { t } = db
  const { operation, queue, payload, priority, runAfter, delayMs, maxAttempts, slotKey, pipelineId, by } = submission
  const { tags, timeoutMs, startBy, startWithinMs } = submission
  const [row] = await db.query<{ job_id: string | null }>(
    'submit.jobs',
    sql`select ${t.submitJob}(${operation}, ${queue}, ${payload}, ${priority}, ${runAfter ?? null}, ${delayMs}, ${maxAttempts},
                              ${slotKey ?? null}, ${pipelineId ?? null}, ${by ?? null}, ${tags ?? null},
                              ${timeoutMs ?? null}, ${startBy ?? null}, ${startWithinMs ?? null})
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

async function insertJobs(
  db: Db,
  submissions: readonly Submission[],
  ids: readonly string[] | undefined,
  origin: Origin,
  when: 'due' | 'waiting' = 'due',
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
  const runAfter = sql`coalesce(${select.runAfter}, ${t.now} + ${select.delayMs} * interval '1 millisecond')`
  const insert = sql`
    insert into ${t.liveJobs} (job_id, operation, queue, payload, priority, run_after, max_attempts, lock_key,
                               slot_key, dedup_key, parent_job_id, pipeline_id, submitted_at, submitted_by, tags,
                               timeout_ms, start_by
                               ${when === 'waiting' ? sql`, waiting_run_after` : sql``})
    select ${ids === undefined ? sql`${t.newJobId}(${t.now}, ${select.nth})` : select.jobId},
           ${select.operation}, ${select.queue}, ${select.payload}, ${select.priority},
           ${when === 'waiting' ? farAway : runAfter},
           ${select.maxAttempts}, ${select.lockKey}, ${select.slotKey}, ${select.dedupKey}, ${parentJobId}::uuid,
           coalesce(${select.pipelineId}, ${pipelineId}::uuid), ${t.now}, ${select.by},
           ${select.tags}::text[], ${select.timeoutMs},
           coalesce(${select.startBy}, ${t.now} + ${select.startWithinMs} * interval '1 millisecond')
           ${when === 'waiting' ? sql`, ${runAfter}` : sql``}
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
  timeoutMs: 'integer',
  startBy: 'timestamptz',
  startWithinMs: 'integer',
  by: 'text',
} as const satisfies Record<keyof Omit<Submission, 'payload' | 'onLocked'>, string>

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
