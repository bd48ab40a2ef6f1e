import { checkKey, storableText } from '../check.ts'
import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql } from '../database/sql.ts'
import { dashedId } from '../ids.ts'
import { encodeJson, type Json } from '../json.ts'
import { fenceValues, type FenceValues } from '../lifecycle/finish.ts'
import { fencedBy, type Fence, type WrittenRow } from '../lifecycle/outcome.ts'

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

/** Step results of one attempt. */
export interface StepsOf {
  fence: Fence
  steps: readonly CheckedStep[]
}

/** Stores step results under the fence; false when the fence is lost. Inside a settlement, `held` says it was proven. */
export async function recordSteps(
  db: Db,
  fence: Fence,
  steps: readonly CheckedStep[],
  held: 'prove' | 'proven' = 'prove',
): Promise<boolean> {
  if (steps.length === 0) return true
  return (await recordStepsOf(db, [{ fence, steps }], held)).has(fence.attemptId)
}

/** The same for many attempts in one statement: those that held their fence. */
export async function recordStepsOf(
  db: Db,
  of: readonly StepsOf[],
  held: 'prove' | 'proven' = 'prove',
): Promise<Set<string>> {
  const byAttempt = new Map<string, string[]>()
  for (const { fence, steps } of of) {
    const id = dashedId(fence.attemptId)
    byAttempt.set(id, [...(byAttempt.get(id) ?? []), ...steps.map(stepJson)])
  }
  const given = `{${[...byAttempt].map(([id, steps]) => `"${id}":[${steps.join(',')}]`).join(',')}}`
  const values = { ...fenceValues(of.map(({ fence }) => fence)), given }
  const rows = await db.query<WrittenRow>('step', recording(db.t, values, held))
  return new Set(rows.map((row) => row.attempt_id))
}

function stepJson({ step, success, message, error, elapsedSeconds, result }: CheckedStep): string {
  const row = { step, success, message, error, elapsed_seconds: elapsedSeconds }
  return `{"result":${result},${JSON.stringify(row).slice(1)}`
}

// A settlement has deleted the row by the time it stores steps; its transaction has proven the fence.
const recording = form<Relations, FenceValues & { given: string }>((t, { jobIds, attemptIds, given }, held) => {
  const mine =
    held === 'proven'
      ? sql`select job_id, attempt_id from unnest(${jobIds}::uuid[], ${attemptIds}::uuid[]) ended (job_id, attempt_id)`
      : sql`select job_id, attempt_id from ${t.liveJobs}
             where ${fencedBy(jobIds, attemptIds)} and status = 'running' order by job_id for key share`
  return sql`
    with mine as (${mine}),
    recorded as (
      insert into ${t.jobSteps} (job_id, attempt_id, ordinal, step, success, message, error, elapsed_seconds, result,
                                 created_at)
      select job_id, attempt_id,
             nth + (select coalesce(max(ordinal), 0) from ${t.jobSteps} earlier where earlier.job_id = mine.job_id),
             step, success, message, error, elapsed_seconds, result, ${t.now}
        from mine,
             rows from (
               jsonb_to_recordset(${given}::jsonb -> attempt_id::text) as (
                 step text, success boolean, message text, error text, elapsed_seconds double precision, result jsonb)
             ) with ordinality given (step, success, message, error, elapsed_seconds, result, nth)
       order by job_id, nth
    )
    select attempt_id from mine`
})

/** The step results of these jobs, of all their attempts, in order; jobs without steps are left out. */
export async function listStepsOf(
  db: Db,
  jobIds: readonly string[],
  options: { withoutResults?: boolean } = {},
): Promise<Map<string, Step[]>> {
  const { t } = db
  const steps = new Map<string, Step[]>()
  if (jobIds.length === 0) return steps
  const rows = await db.query<StepRow>(
    'steps',
    sql`select job_id, attempt_id, ordinal, step, success, message, error, elapsed_seconds,
               ${options.withoutResults ? sql`null::jsonb as result` : sql`result`}, created_at
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
