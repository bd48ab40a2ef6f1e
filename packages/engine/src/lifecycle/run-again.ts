import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { JobStatus } from '../read/job.ts'
import type { Submission } from './submission.ts'
import { insertSubmissions, type Submitted } from './submit.ts'

/*
 * run again: a failed or cancelled job is submitted anew, as a job of its own that names it. The old one stays what it
 * is: nothing leaves a terminal state.
 *
 * The new job is what the old one was submitted as: operation, payload, queue, priority, keys, attempts, timeout, pipeline,
 * tags. It is due at once, has no steps, and is nobody's child: the parent of the old one has counted it, or has closed.
 * Lock order: finished_jobs by id, then as in submit. The rows are locked in a statement of their own, so that of two
 * callers the second sees what the first has made.
 */

export type RanAgain =
  /** `isNew` is false for a job that an earlier call made, and that is still pending or running. */
  | { ranAgain: true; jobId: string; isNew: boolean }
  | { ranAgain: false; why: 'not_found' }
  /** Only failed and cancelled jobs are run again. */
  | { ranAgain: false; why: 'not_failed'; status: 'pending' | 'running' | 'completed' }
  | ConflictOf<Extract<Submitted, { submitted: false }>>

/** A conflict of a submission, as the answer to another call. */
type ConflictOf<Refused> = Refused extends { submitted: false }
  ? Omit<Refused, 'submitted'> & { ranAgain: false }
  : never

export interface RunAgainRows {
  /** In the order of the ids that were given. */
  answers: RanAgain[]
  /** What was submitted, and under which id; for the wake-up. */
  submissions: Submission[]
  jobIds: string[]
}

interface EndedRow {
  job_id: string
  operation: string
  queue: string
  payload: string
  priority: number
  max_attempts: number
  timeout_ms: number | null
  lock_key: string | null
  slot_key: string | null
  dedup_key: string | null
  pipeline_id: string | null
  tags: string | null
}

/** Runs these jobs again, those that can be. Runs inside whatever transaction `db` is. */
export async function runAgainJobs(db: Db, jobIds: readonly string[], by: string | undefined): Promise<RunAgainRows> {
  const ended = await lockEnded(db, jobIds)
  const underWay = await unfinishedRunsOf(db, jobIds)
  const wanted = ended.filter(({ job_id: jobId }) => !underWay.has(jobId))
  const submissions = wanted.map((row) => submissionOf(row, by))
  const submitted = await insertSubmissions(db, submissions, { from: 'submitter' })
  const made = wanted.flatMap((row, nth) => {
    const answer = submitted[nth]
    return answer?.submitted
      ? [{ of: row.job_id, jobId: answer.jobId, submission: submissions[nth] as Submission }]
      : []
  })
  await note(db, made, by)
  const answers = new Map<string, RanAgain>(
    wanted.map((row, nth) => [row.job_id, answerOf(submitted[nth] as Submitted)]),
  )
  for (const [jobId, newer] of underWay) answers.set(jobId, { ranAgain: true, jobId: newer, isNew: false })
  for (const jobId of jobIds) if (!answers.has(jobId)) answers.set(jobId, await whyNot(db, jobId))
  return {
    answers: jobIds.map((jobId) => answers.get(jobId) as RanAgain),
    submissions: made.map(({ submission }) => submission),
    jobIds: made.map(({ jobId }) => jobId),
  }
}

async function lockEnded(db: Db, jobIds: readonly string[]): Promise<EndedRow[]> {
  const { t } = db
  return db.query<EndedRow>(
    'run_again.lock',
    sql`select job_id, operation, queue, payload::text as payload, priority, max_attempts, timeout_ms, lock_key, slot_key, dedup_key,
               pipeline_id, tags::text as tags
          from ${t.finishedJobs}
         where job_id = any(${jobIds}::uuid[]) and status <> 'completed' and deleted_at is null
         order by job_id
           for update`,
  )
}

/** The jobs that run these again and have not ended, by the ids of the old ones. */
async function unfinishedRunsOf(db: Db, jobIds: readonly string[]): Promise<Map<string, string>> {
  const { t } = db
  const rows = await db.query<{ run_again_of: string; job_id: string }>(
    'run_again.under_way',
    sql`select again.run_again_of, again.job_id
          from ${t.runAgains} again join ${t.liveJobs} job on job.job_id = again.job_id
         where again.run_again_of = any(${jobIds}::uuid[])`,
  )
  return new Map(rows.map((row) => [row.run_again_of, row.job_id]))
}

function submissionOf(row: EndedRow, by: string | undefined): Submission {
  return {
    operation: row.operation,
    queue: row.queue,
    payload: row.payload,
    priority: row.priority,
    runAfter: undefined,
    delayMs: 0,
    maxAttempts: row.max_attempts,
    timeoutMs: row.timeout_ms ?? undefined,
    startBy: undefined, // a time that has passed
    startWithinMs: undefined,
    lockKey: row.lock_key ?? undefined,
    slotKey: row.slot_key ?? undefined,
    dedupKey: row.dedup_key ?? undefined,
    onLocked: 'refuse',
    pipelineId: row.pipeline_id ?? undefined,
    tags: row.tags ?? undefined,
    by,
  }
}

function answerOf(answer: Submitted): RanAgain {
  if (answer.submitted) return { ranAgain: true, jobId: answer.jobId, isNew: true }
  const { submitted: ranAgain, ...conflict } = answer
  return { ...conflict, ranAgain }
}

async function note(db: Db, made: readonly { of: string; jobId: string }[], by: string | undefined): Promise<void> {
  if (made.length === 0) return
  const { t } = db
  await db.query(
    'run_again.note',
    sql`with made as (
          insert into ${t.runAgains} (run_again_of, job_id)
          select run_again_of, job_id
            from unnest(${made.map(({ of }) => of)}::uuid[], ${made.map(({ jobId }) => jobId)}::uuid[])
                   made (run_again_of, job_id)
          returning run_again_of, job_id
        )
        insert into ${t.storedEvents} (job_id, ts, event, fields)
        select run_again_of, ${t.now}, 'job.run_again',
               jsonb_strip_nulls(jsonb_build_object('by', ${by ?? null}::text, 'job_id', replace(job_id::text, '-', '')))
          from made`,
  )
}

async function whyNot(db: Db, jobId: string): Promise<RanAgain> {
  const { t } = db
  const [job] = await db.query<{ status: JobStatus }>(
    'run_again.why',
    sql`select status from ${t.jobs} where job_id = ${jobId} and deleted_at is null`,
  )
  if (job === undefined) return { ranAgain: false, why: 'not_found' }
  const { status } = job
  // One that has failed by now was running when its row was looked for.
  return {
    ranAgain: false,
    why: 'not_failed',
    status: status === 'failed' || status === 'cancelled' ? 'running' : status,
  }
}
