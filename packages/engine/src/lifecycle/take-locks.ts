import type { Db } from '../database/database.ts'
import { raw, sql } from '../database/sql.ts'
import type { Submission } from './submission.ts'

/*
 * The locks of submissions: taken, waited for, or found to be held.
 *
 * A job that waits joins the line of its lock in live_jobs, and the delete of the lock's row hands the lock to the first
 * of the line, by a trigger, whoever deletes it. A job that joins while the holder ends must not be missed: it keeps the
 * row of the lock `for key share` until it has committed. The delete waits for that, and then sees the job; renewals and
 * claims of the holder, which change no key, do not wait.
 */

export interface Row {
  submission: Submission
  jobId: string
}

/** By id: the jobs that hold their lock now, and those that wait for it. A job that is in neither finds it held. */
export interface Locks {
  held: ReadonlySet<string>
  waiting: ReadonlySet<string>
}

/** How often a lock may change hands between two looks at it before the submission is given up. */
const maxRounds = 50

/** The run_after of a job that waits for its lock: no claim finds it, of whichever release. */
export const farAway = raw(`timestamptz '9999-12-31 00:00+00'`)

/** Takes the locks of these jobs; of several that want one lock, the first gets it. */
export async function takeLocks(db: Db, rows: readonly Row[]): Promise<Locks> {
  const held = new Set<string>()
  const waiting = new Set<string>()
  let left = rows.filter(({ submission }) => submission.lockKey !== undefined)
  for (let round = 0; left.length > 0 && round < maxRounds; round += 1) {
    for (const jobId of await takeFree(db, firstOfEach(left))) held.add(jobId)
    left = left.filter(({ jobId, submission }) => !held.has(jobId) && submission.onLocked === 'wait')
    const joined = await joinLines(db, left)
    for (const { jobId, submission } of left) if (joined.has(submission.lockKey as string)) waiting.add(jobId)
    left = left.filter(({ jobId }) => !waiting.has(jobId))
  }
  if (left.length > 0)
    throw new Error(`The lock ${left[0]?.submission.lockKey} changes hands faster than one can wait.`)
  return { held, waiting }
}

function firstOfEach(rows: readonly Row[]): Map<string, string> {
  const wanted = new Map<string, string>()
  for (const { submission, jobId } of rows) {
    if (submission.lockKey !== undefined && !wanted.has(submission.lockKey)) wanted.set(submission.lockKey, jobId)
  }
  return wanted
}

async function takeFree(db: Db, wanted: ReadonlyMap<string, string>): Promise<ReadonlySet<string>> {
  const taken = await insertLocks(db, wanted)
  const missed = [...wanted].filter(([, jobId]) => !taken.has(jobId))
  if (missed.length === 0) return taken
  const lockKeys = missed.map(([lockKey]) => lockKey)
  if (!(await freeLapsedLocks(db, lockKeys))) return taken
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

/** Keeps the holders of these locks from letting go unseen until this transaction ends; the locks that are held. */
async function joinLines(db: Db, rows: readonly Row[]): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set()
  const { t } = db
  const held = await db.query<{ lock_key: string }>(
    'submit.join_lines',
    sql`select lock_key from ${t.resourceLocks}
         where lock_key = any(${rows.map(({ submission }) => submission.lockKey)}::text[])
         order by lock_key
           for key share`,
  )
  return new Set(held.map((row) => row.lock_key))
}

/** Writes down whom the jobs that have joined a line wait for. */
export async function recordWaiting(db: Db, jobIds: readonly string[]): Promise<void> {
  if (jobIds.length === 0) return
  const { t } = db
  await db.query(
    'submit.waiting',
    sql`insert into ${t.storedEvents} (job_id, ts, event, fields)
        select job.job_id, ${t.now}, 'job.lock_awaited',
               jsonb_build_object('lock_key', job.lock_key, 'holder', replace(held.job_id::text, '-', ''))
          from ${t.liveJobs} job join ${t.resourceLocks} held on held.lock_key = job.lock_key
         where job.job_id = any(${jobIds}::uuid[])
         order by job.job_id`,
  )
}

/** Frees the locks of jobs that were not written. */
export async function giveBackLocks(db: Db, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return
  const { t } = db
  await db.query(
    'submit.give_back_locks',
    sql`delete from ${t.resourceLocks}
         where lock_key = any(${rows.map(({ submission }) => submission.lockKey)}::text[])
           and job_id = any(${rows.map(({ jobId }) => jobId)}::uuid[])`,
  )
}
