import { checkInteger, storableText } from '../check.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { encodeJson, type Json } from '../json.ts'
import type { Fence } from '../lifecycle/outcome.ts'

export type Level = 'info' | 'warning' | 'error'

export interface Progress {
  current: number
  total?: number
}

export interface EmitOptions {
  message?: string
  level?: Level
  fields?: Record<string, Json>
  progress?: Progress
}

const namePattern = /^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$/
const levels: readonly string[] = ['info', 'warning', 'error'] satisfies Level[]

/** An event that has passed its checks. */
export interface Emission {
  event: string
  level: Level
  message: string | null
  fields: string | null
  progress: Progress | undefined
}

export function checkEmission(event: string, options: EmitOptions, maxBytes: number): Emission {
  if (!namePattern.test(event) || event.length > 200 || event.startsWith('job.')) {
    throw new FencepostError(
      'event_invalid',
      `${JSON.stringify(event)} is not a name for an event: give dotted lower-case words, such as resize.read. ` +
        'Names that begin with job. are the engine’s own.',
    )
  }
  const level = options.level ?? 'info'
  if (!levels.includes(level)) {
    throw new FencepostError('event_invalid', `${JSON.stringify(level)} is not a level: ${levels.join(', ')}.`)
  }
  return {
    event,
    level,
    message: options.message === undefined ? null : storableText(options.message),
    fields: options.fields === undefined ? null : encodeJson(options.fields, `The fields of ${event}`, maxBytes),
    progress: options.progress === undefined ? undefined : checkProgress(options.progress),
  }
}

export function checkProgress(progress: Progress): Progress {
  checkInteger(progress.current, 'progress.current', 0, Number.MAX_SAFE_INTEGER)
  if (progress.total !== undefined) checkInteger(progress.total, 'progress.total', 0, Number.MAX_SAFE_INTEGER)
  return progress
}

/** Writes an event, with progress if there is any, under the fence; false when the fence is lost. */
export async function emit(db: Db, fence: Fence, emission: Emission): Promise<boolean> {
  const { t } = db
  const current = sql`job_id = ${fence.jobId} and attempt_id = ${fence.attemptId} and status = 'running'`
  const mine =
    emission.progress === undefined
      ? sql`select job_id, attempt_id from ${t.liveJobs} where ${current} for key share`
      : sql`update ${t.liveJobs}
               set progress_current = ${emission.progress.current}::bigint,
                   progress_total = coalesce(${emission.progress.total ?? null}::bigint, progress_total)
             where ${current} returning job_id, attempt_id`
  const rows = await db.query(
    'emit',
    sql`
    with mine as (${mine})
    insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
    select job_id, attempt_id, ${t.now}, ${emission.level}::text, ${emission.event}::text, ${emission.message}::text,
           ${emission.fields}::jsonb
      from mine
    returning id`,
  )
  return rows.length > 0
}

/** Sets the progress alone, without an event; false when the fence is lost. */
export async function setProgress(db: Db, fence: Fence, progress: Progress): Promise<boolean> {
  const { t } = db
  const rows = await db.query(
    'progress',
    sql`update ${t.liveJobs}
           set progress_current = ${progress.current}::bigint,
               progress_total = coalesce(${progress.total ?? null}::bigint, progress_total)
         where job_id = ${fence.jobId} and attempt_id = ${fence.attemptId} and status = 'running'
        returning job_id`,
  )
  return rows.length > 0
}
