import { checkKey, storableText } from '../check.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { encodeJson, type Json } from '../json.ts'
import type { Fence } from '../lifecycle/outcome.ts'

/** A named part of a job, and what came of it. */
export interface StepResult {
  step: string
  success: boolean
  message?: string | undefined
  error?: string | undefined
  elapsedSeconds?: number | undefined
  result?: unknown
}

/** A step result as it was stored, by whichever attempt. */
export interface Step {
  attemptId: string
  ordinal: number
  step: string
  success: boolean
  message: string | undefined
  error: string | undefined
  elapsedSeconds: number | undefined
  result: Json
  createdAt: string
}

interface StepRow {
  job_id: string
  attempt_id: string
  ordinal: number
  step: string
  success: boolean
  message: string | null
  error: string | null
  elapsed_seconds: number | null
  result: Json
  created_at: string
}

/** A step result that has passed its checks. */
export type CheckedStep = Omit<StepResult, 'result'> & { result: string }

export function checkStep(step: StepResult, maxBytes: number): CheckedStep {
  checkKey(step.step, 'step')
  return {
    ...step,
    message: step.message === undefined ? undefined : storableText(step.message),
    error: step.error === undefined ? undefined : storableText(step.error),
    result: encodeJson(step.result, `The result of step ${step.step}`, maxBytes),
  }
}

/** Stores step results under the fence; false when the fence is lost. Inside a settlement, `held` says it was proven. */
export async function recordSteps(
  db: Db,
  fence: Fence,
  steps: readonly CheckedStep[],
  held: 'prove' | 'proven' = 'prove',
): Promise<boolean> {
  if (steps.length === 0) return true
  const { t } = db
  const mine =
    held === 'proven'
      ? sql`select ${fence.jobId}::uuid as job_id, ${fence.attemptId}::uuid as attempt_id`
      : sql`select job_id, attempt_id from ${t.liveJobs}
             where job_id = ${fence.jobId} and attempt_id = ${fence.attemptId} and status = 'running' for key share`
  const rows = await db.query(
    'step',
    sql`
    with mine as (${mine})
    insert into ${t.jobSteps} (job_id, attempt_id, ordinal, step, success, message, error, elapsed_seconds, result,
                               created_at)
    select job_id, attempt_id,
           nth + (select coalesce(max(ordinal), 0) from ${t.jobSteps} earlier where earlier.job_id = ${fence.jobId}),
           step, success, message, error, elapsed_seconds, nullif(result, 'null'), ${t.now}
      from mine,
           unnest(${steps.map(({ step }) => step)}::text[], ${steps.map(({ success }) => success)}::boolean[],
                  ${steps.map(({ message }) => message ?? null)}::text[],
                  ${steps.map(({ error }) => error ?? null)}::text[],
                  ${steps.map(({ elapsedSeconds }) => elapsedSeconds ?? null)}::double precision[],
                  ${steps.map(({ result }) => result)}::jsonb[])
           with ordinality given (step, success, message, error, elapsed_seconds, result, nth)
    returning id`,
  )
  return rows.length > 0
}

/** The step results of a job, of all its attempts, in order. */
export async function listSteps(db: Db, jobId: string): Promise<Step[]> {
  return (await listStepsOf(db, [jobId])).get(jobId) ?? []
}

/** The same for many jobs in one statement; jobs without steps are left out. */
export async function listStepsOf(db: Db, jobIds: readonly string[]): Promise<Map<string, Step[]>> {
  const { t } = db
  const steps = new Map<string, Step[]>()
  if (jobIds.length === 0) return steps
  const rows = await db.query<StepRow>(
    'steps',
    sql`select job_id, attempt_id, ordinal, step, success, message, error, elapsed_seconds, result, created_at
          from ${t.jobSteps} where job_id = any(${jobIds}::uuid[]) order by job_id, id`,
  )
  for (const row of rows) {
    const of = steps.get(row.job_id)
    if (of === undefined) steps.set(row.job_id, [stepFromRow(row)])
    else of.push(stepFromRow(row))
  }
  return steps
}

function stepFromRow(row: StepRow): Step {
  return {
    attemptId: row.attempt_id,
    ordinal: row.ordinal,
    step: row.step,
    success: row.success,
    message: row.message ?? undefined,
    error: row.error ?? undefined,
    elapsedSeconds: row.elapsed_seconds ?? undefined,
    result: row.result,
    createdAt: row.created_at,
  }
}
