import type { Job, JobEvent, JobSummary } from '@fencepost/client'
import type { Output, Style } from '../output/output.ts'
import { plain } from '../output/plain.ts'
import { facts, table } from '../output/table.ts'

// Jobs and events in words.

const statusStyles: Record<Job['status'], Style> = {
  pending: 'yellow',
  running: 'cyan',
  completed: 'green',
  failed: 'red',
  cancelled: 'magenta',
}

const levelStyles: Record<JobEvent['level'], Style> = { info: 'bold', warning: 'yellow', error: 'red' }

export function statusWord({ status }: Pick<Job, 'status'>, output: Output): string {
  return output.style(statusStyles[status], status)
}

/** How far it has come: its own progress, or how many of its children have ended. */
export function progressOf({ progress, children }: JobSummary): { current: number; total: number | null } | null {
  if (children === null) return progress
  return { current: children.completed + children.failed, total: children.total }
}

export function describeJobs(jobs: readonly JobSummary[], output: Output): string {
  if (jobs.length === 0) return 'No jobs.'
  return table(
    ['JOB', 'OPERATION', 'STATUS', 'ATTEMPTS', 'PROGRESS', 'SUBMITTED'],
    jobs.map((job) => [
      job.job_id,
      plain(job.operation),
      statusWord(job, output),
      `${job.attempts}/${job.max_attempts}`,
      progressWord(job) ?? '',
      timeWord(job.submitted_at),
    ]),
  )
}

export function describeJob(job: Job, output: Output): string {
  const lines = facts([
    ['Job', job.job_id],
    ['Operation', plain(job.operation)],
    ['Status', statusWord(job, output)],
    ['Progress', progressWord(job)],
    ['Attempts', `${job.attempts} of ${job.max_attempts}`],
    ['Error', job.error === null ? undefined : output.style('red', plain(job.error))],
    ['Result', job.result === null || job.result === undefined ? undefined : plain(JSON.stringify(job.result))],
    ['Payload', plain(JSON.stringify(job.payload))],
    ['Queue', plain(job.queue)],
    ['Priority', job.priority === 0 ? undefined : String(job.priority)],
    ['Lock', plainOf(job.lock_key)],
    ['Slot', job.slot_key === null ? undefined : `${plain(job.slot_key)}${job.is_current ? ' (current)' : ''}`],
    ['Dedup key', plainOf(job.dedup_key)],
    ['Tags', job.tags.length === 0 ? undefined : plain(job.tags.join(', '))],
    ['Parent', job.parent_job_id ?? undefined],
    ['Pipeline', job.pipeline_id ?? undefined],
    ['Runs again', job.run_again_of ?? undefined],
    ['Run again as', job.run_again_as ?? undefined],
    ['Worker', plainOf(job.locked_by)],
    ['Lease until', job.lease_until === null ? undefined : timeWord(job.lease_until)],
    ['Submitted', `${timeWord(job.submitted_at)}${job.submitted_by === null ? '' : ` by ${plain(job.submitted_by)}`}`],
    ['Not before', job.status === 'pending' ? timeWord(job.run_after) : undefined],
    ['To start by', job.start_by === null || job.started_at !== null ? undefined : timeWord(job.start_by)],
    ['Timeout', job.timeout_ms === null ? undefined : `${job.timeout_ms} ms`],
    ['Started', job.started_at === null ? undefined : timeWord(job.started_at)],
    ['Ended', job.completed_at === null ? undefined : timeWord(job.completed_at)],
  ])
  const steps = (job.results ?? []).map(({ action, success, message, error, elapsed_seconds: seconds }) => [
    `  ${plain(action)}`,
    success ? output.style('green', 'done') : output.style('red', 'failed'),
    seconds === null ? '' : `${seconds.toFixed(1)} s`,
    plain(error ?? message ?? ''),
  ])
  return steps.length === 0 ? lines : `${lines}\n${table(['Steps', '', '', ''], steps)}`
}

export function describeEvent({ ts, level, event, message, fields }: JobEvent, output: Output): string {
  const more = plain(message ?? (fields === null ? '' : wordsOf(fields)))
  const name = output.style(levelStyles[level], plain(event))
  const line = `${output.style('dim', timeOfDay(ts))}  ${name}${more === '' ? '' : `  ${more}`}`
  return [line, ...traceOf(fields).map((one) => output.style('dim', `    ${plain(one)}`))].join('\n')
}

/** Where an error was thrown, and what caused it. The first line of its stack repeats the message. */
function traceOf(fields: Readonly<Record<string, unknown>> | null): string[] {
  const { stack, causes } = fields ?? {}
  const framesOf = (text: unknown) =>
    (typeof text === 'string' ? text.split('\n').slice(1) : []).map((one) => one.trim())
  const causeLines = (Array.isArray(causes) ? (causes as unknown[]) : []).flatMap((cause) => {
    const { error, stack: frames } = (cause ?? {}) as { error?: unknown; stack?: unknown }
    return typeof error === 'string' ? [`caused by ${error}`, ...framesOf(frames)] : []
  })
  return [...framesOf(stack).filter((one) => one.startsWith('at ')), ...causeLines]
}

function wordsOf(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ')
}

function plainOf(text: string | null): string | undefined {
  return text === null ? undefined : plain(text)
}

function progressWord(job: JobSummary): string | undefined {
  const progress = progressOf(job)
  if (progress === null) return undefined
  const { current, total } = progress
  return total === null ? String(current) : `${current}/${total}`
}

// The API's times are UTC; nobody needs their microseconds here.
function timeWord(time: string): string {
  return `${time.slice(0, 10)} ${time.slice(11, 19)}Z`
}

function timeOfDay(time: string): string {
  return time.slice(11, 23)
}
