import { jobStatus, type JobFilter } from '@fencepost/client'
import type { Option } from '../command/command.ts'
import { UsageError } from '../failure.ts'

/** The options that say which jobs are meant. */
export const filterOptions = {
  status: {
    kind: 'list',
    placeholder: jobStatus.options.join('|'),
    description: 'Only jobs in this state, or in one of several with commas.',
  },
  operation: {
    kind: 'list',
    placeholder: 'name',
    description: 'Only jobs of this operation, or of one of several with commas.',
  },
  queue: { kind: 'text', placeholder: 'name', description: 'Only jobs of this queue.' },
  errorCode: { kind: 'text', placeholder: 'code', description: 'Only jobs with this error code.' },
  worker: { kind: 'text', placeholder: 'worker_id', description: 'Only jobs that this worker has, or had last.' },
  submittedFrom: { kind: 'text', placeholder: 'time', description: 'Only jobs submitted at this time or later.' },
  submittedBefore: { kind: 'text', placeholder: 'time', description: 'Only jobs submitted before this time.' },
  completedFrom: { kind: 'text', placeholder: 'time', description: 'Only jobs that ended at this time or later.' },
  completedBefore: { kind: 'text', placeholder: 'time', description: 'Only jobs that ended before this time.' },
  text: { kind: 'text', placeholder: 'text', description: 'Only jobs with this text in their lock key or payload.' },
  parent: { kind: 'text', placeholder: 'job_id', description: 'Only children of this job.' },
  pipeline: { kind: 'text', placeholder: 'pipeline_id', description: 'Only jobs of this pipeline.' },
  lockKey: { kind: 'text', placeholder: 'key', description: 'Only jobs with this lock.' },
  tag: { kind: 'text', placeholder: 'tag', description: 'Only jobs with this tag.' },
} as const satisfies Record<string, Option>

type FilterValues = {
  readonly [Name in keyof typeof filterOptions]:
    ((typeof filterOptions)[Name]['kind'] extends 'list' ? readonly string[] : string) | undefined
}

/** The filter that they make, without what was not given. */
export function filterOf(options: FilterValues, command: string): JobFilter {
  const status = options.status?.map((one) => {
    const known = jobStatus.safeParse(one)
    if (known.success) return known.data
    throw new UsageError(`--status is ${JSON.stringify(one)}; give ${jobStatus.options.join(', ')}.`, { command })
  })
  const filter = {
    status,
    operation: options.operation === undefined ? undefined : [...options.operation],
    queue: options.queue,
    error_code: options.errorCode,
    worker: options.worker,
    submitted_from: options.submittedFrom,
    submitted_before: options.submittedBefore,
    completed_from: options.completedFrom,
    completed_before: options.completedBefore,
    text: options.text,
    parent: options.parent,
    pipeline: options.pipeline,
    lock_key: options.lockKey,
    tag: options.tag,
  }
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
}
