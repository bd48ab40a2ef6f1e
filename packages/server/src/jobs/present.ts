import type { JobValue } from '@fencepost/client'
import { Lookup, type Engine, type Job, type JobEvent, type ListedJob, type Step } from '@fencepost/engine'
import type { Application, JobJson, Presenter } from '../application.ts'

const everything: readonly JobValue[] = ['payload', 'result', 'results']

/** Makes the JSON of jobs, with the results of their steps and what applications add. */
export function presenter(engine: Engine, applications: readonly Application[]): Presenter {
  const present = (job: ListedJob, steps: readonly Step[], include: readonly JobValue[]) =>
    applications.reduce<JobJson>(
      (json, application) => application.presentJob?.(json, job) ?? json,
      jobJson(job, steps, include),
    )
  const steps = new Lookup((jobIds) => engine.steps(jobIds, { withoutResults: true }))
  const one = async (job: ListedJob, include: readonly JobValue[]) => {
    // Before its first claim a job has none to be looked up.
    const wanted = include.includes('results') && job.startedAt !== undefined
    return present(job, (wanted ? await steps.find(job.jobId) : undefined) ?? [], include)
  }
  const summaries: Presenter['summaries'] = async (jobs, include) => Promise.all(jobs.map((job) => one(job, include)))
  return {
    jobs: (jobs) => summaries(jobs, everything),
    summaries,
    accepted: (job) => present(asAccepted(job), [], everything),
  }
}

/** The job as it was when it was accepted, whatever has happened to it since. */
function asAccepted(job: Job): Job {
  return {
    ...job,
    status: 'pending',
    attemptId: undefined,
    attempts: 0,
    lockedBy: undefined,
    lockedAt: undefined,
    leaseUntil: undefined,
    isCurrent: false,
    children: undefined,
    deferredAt: undefined,
    progress: undefined,
    result: null,
    error: undefined,
    errorCode: undefined,
    startedAt: undefined,
    completedAt: undefined,
  }
}

/** The one place where properties of a job become fields. */
function jobJson(job: ListedJob, steps: readonly Step[], include: readonly JobValue[]): JobJson {
  return {
    job_id: job.jobId,
    status: job.status,
    submitted_at: job.submittedAt,
    started_at: job.startedAt ?? null,
    completed_at: job.completedAt ?? null,
    ...(include.includes('results') ? { results: resultsOf(steps) } : {}),
    error: job.error ?? null,
    operation: job.operation,
    attempts: job.attempts,
    max_attempts: job.maxAttempts,
    progress: job.progress === undefined ? null : { current: job.progress.current, total: job.progress.total ?? null },
    parent_job_id: job.parentJobId ?? null,
    pipeline_id: job.pipelineId ?? null,
    ...(include.includes('payload') ? { payload: job.payload } : {}),
    ...(include.includes('result') ? { result: job.result ?? null } : {}),
    error_code: job.errorCode ?? null,
    queue: job.queue,
    priority: job.priority,
    run_after: job.runAfter,
    lock_key: job.lockKey ?? null,
    slot_key: job.slotKey ?? null,
    is_current: job.isCurrent,
    dedup_key: job.dedupKey ?? null,
    children: job.children ?? null,
    submitted_by: job.submittedBy ?? null,
    tags: job.tags,
    run_again_of: job.runAgainOf ?? null,
    run_again_as: job.runAgainAs ?? null,
    timeout_ms: job.timeoutMs ?? null,
    start_by: job.startBy ?? null,
    attempt_id: job.attemptId ?? null,
    locked_by: job.lockedBy ?? null,
    locked_at: job.lockedAt ?? null,
    lease_until: job.leaseUntil ?? null,
    deferred_at: job.deferredAt ?? null,
  }
}

// A step that failed and was tried again shows its last result, at its first place.
function resultsOf(steps: readonly Step[]): JobJson[] | null {
  if (steps.length === 0) return null
  const last = new Map<string, Step>()
  for (const step of steps) last.set(step.step, step)
  return [...last.values()].map((step) => ({
    action: step.step,
    success: step.success,
    message: step.message ?? null,
    error: step.error ?? null,
    elapsed_seconds: step.elapsedSeconds ?? null,
  }))
}

export function eventJson(event: JobEvent) {
  return {
    id: event.id,
    job_id: event.jobId,
    attempt_id: event.attemptId ?? null,
    ts: event.ts,
    level: event.level,
    event: event.event,
    message: event.message ?? null,
    fields: (event.fields ?? null) as Record<string, unknown> | null,
  }
}

/** camelCase properties to snake_case fields, one level deep; undefined becomes null. */
export function snakeCase(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      (one as unknown) ?? null,
    ]),
  )
}
