import type { Context } from '../context.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { prepareSubmission, type Submission } from '../lifecycle/submission.ts'
import { insertSubmissions } from '../lifecycle/submit.ts'
import type { Operation } from '../operation.ts'
import { ruleOf, scheduleColumns, type ScheduleOutcome, type ScheduleRow } from './schedule.ts'
import { dueTimes, lastDueTime } from './times.ts'

/*
 * Submits the jobs of schedules that are due, one schedule per transaction: its row is locked, its jobs are inserted, its
 * next due time is set, and all of it commits together. So a due time has its submission once, however many processes
 * are at it: others pass over a locked row, and find it not due afterwards. A process that dies leaves it due.
 * Lock order: schedules, then as in submit.
 */

/** A due time that passed longer ago than this was missed: nobody was there for it. */
const missedMs = 60_000
/** So many missed due times are caught up in one transaction; the rest follow in the next. */
const maxCaughtUp = 100

interface DueRow extends ScheduleRow {
  now_ms: number
  last_is_live: boolean
}

interface Done {
  outcome: ScheduleOutcome
  dueMs: number
  nextMs: number
  submissions: Submission[]
  jobIds: (string | undefined)[]
  error: string | undefined
}

/** What was due, and is dealt with. */
export interface SubmittedDue {
  /** How many schedules, whatever came of them; one with more to catch up than fits is counted again. */
  schedules: number
  jobIds: string[]
}

/** Submits for the schedules of these operations until none is due. */
export async function submitDue(context: Context, operations: readonly string[]): Promise<SubmittedDue> {
  const all: SubmittedDue = { schedules: 0, jobIds: [] }
  const failed: string[] = []
  for (;;) {
    let name: string | undefined
    const noteName = (found: string): void => {
      name = found
    }
    let done: Done | undefined
    try {
      done = await context.database.transaction('schedules', (db) =>
        submitNext(context, db, { operations, failed, noteName }),
      )
    } catch (error) {
      // One that cannot be submitted for must not hold up the others. It stays due.
      if (name === undefined || (error instanceof FencepostError && error.code === 'database_unavailable')) throw error
      failed.push(name)
      context.logger.warn({ err: error, schedule: name }, 'schedule_failed')
      continue
    }
    if (done === undefined) return all
    all.schedules += 1
    context.wake.submitted(done.submissions, done.jobIds)
    all.jobIds.push(...done.jobIds.filter((jobId) => jobId !== undefined))
  }
}

interface Wanted {
  operations: readonly string[]
  /** Names of those to pass over. */
  failed: readonly string[]
  noteName: (name: string) => void
}

async function submitNext(
  context: Context,
  db: Db,
  { operations, failed, noteName }: Wanted,
): Promise<Done | undefined> {
  const { t } = db
  const [row] = await db.query<DueRow>(
    'schedules.due',
    sql`select ${scheduleColumns}, (extract(epoch from ${t.now}) * 1000)::double precision as now_ms,
               exists (select from ${t.liveJobs} job where job.job_id = last_job_id) as last_is_live
          from ${t.schedules}
         where paused_at is null and next_at <= ${t.now} and operation = any(${operations}::text[])
           and not name = any(${failed}::text[])
           and not exists (select from ${t.settings} where key = 'drain' and value <> 'off')
         order by next_at limit 1
           for update skip locked`,
  )
  const operation = row === undefined ? undefined : context.operations.get(row.operation)
  if (row === undefined || operation === undefined) return undefined
  noteName(row.name)
  const done = await submitFor(context, db, row, operation)
  if (done !== undefined) await note(db, row.name, done)
  return done
}

/** Undefined when new work has been refused since the look: it stays due. */
async function submitFor(context: Context, db: Db, row: DueRow, operation: Operation): Promise<Done | undefined> {
  const rule = ruleOf(row)
  const nowMs = Math.floor(row.now_ms)
  const last = lastDueTime(rule, row.next_ms, nowMs)
  const none = { dueMs: last.dueMs, nextMs: last.nextMs, submissions: [], jobIds: [], error: undefined }
  if (row.catch_up === 'skip' && nowMs - last.dueMs > missedMs) return { ...none, outcome: 'missed' }
  if (row.overlap === 'skip' && row.last_is_live) return { ...none, outcome: 'overlapped' }
  const caughtUp = row.catch_up === 'all' && row.overlap !== 'skip'
  const due = caughtUp ? dueTimes(rule, row.next_ms, nowMs, maxCaughtUp) : { dueMs: [last.dueMs], nextMs: last.nextMs }
  let submissions: Submission[]
  try {
    submissions = await Promise.all(due.dueMs.map((dueMs) => submissionAt(context, row, operation, dueMs)))
  } catch (error) {
    // The operation has changed since, or makes its keys no more: no job can be made of this.
    return { ...none, outcome: 'invalid', error: (error as Error).message }
  }
  const answers = await insertSubmissions(db, submissions, { from: 'submitter' })
  const refused = answers.find((answer) => !answer.submitted)
  if (refused?.submitted === false && refused.why === 'drained') {
    // In the middle of a batch: none of it is kept.
    if (answers.some(({ submitted }) => submitted)) throw new Error('Drained while its jobs were being submitted.')
    return undefined
  }
  const outcome = refused?.submitted === false ? (refused.why as 'locked' | 'duplicate') : 'submitted'
  const jobIds = answers.map((answer) => (answer.submitted ? answer.jobId : undefined))
  const dueMs = due.dueMs.at(-1) as number
  const error =
    refused?.submitted === false && 'holder' in refused ? `Job ${refused.holder.jobId} is in the way.` : undefined
  return { outcome, dueMs, nextMs: due.nextMs, submissions, jobIds, error }
}

/** Its run_after is its due time, so that a job says what it was for. */
async function submissionAt(
  { limits }: Context,
  { name, payload, queue, priority, max_attempts: maxAttempts, overlap }: DueRow,
  operation: Operation,
  dueMs: number,
): Promise<Submission> {
  const options = {
    runAfter: new Date(dueMs),
    priority,
    by: `schedule ${name}`,
    ...(queue !== null && { queue }),
    ...(maxAttempts !== null && { maxAttempts }),
  }
  const submission = await prepareSubmission(operation, payload, options, limits.maxPayloadBytes)
  return overlap === 'queue' ? { ...submission, slotKey: submission.slotKey ?? `schedule:${name}` } : submission
}

async function note(db: Db, name: string, { outcome, dueMs, nextMs, jobIds, error }: Done): Promise<void> {
  const { t } = db
  const jobId = jobIds.findLast((id) => id !== undefined) ?? null
  await db.query(
    'schedules.note',
    sql`update ${t.schedules}
           set next_at = to_timestamp(${nextMs}::double precision / 1000),
               last_due_at = to_timestamp(${dueMs}::double precision / 1000), last_outcome = ${outcome},
               last_job_id = coalesce(${jobId}::uuid, last_job_id), last_error = ${error ?? null}
         where name = ${name}`,
  )
}
