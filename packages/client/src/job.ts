import { z } from 'zod'
import { count, id, idInput, key, name, queryInteger, queueName, tag, timeInput, timestamp } from './values.ts'

export const jobStatus = z.enum(['pending', 'running', 'completed', 'failed', 'cancelled'])
export type JobStatus = z.output<typeof jobStatus>

const stepResult = z.object({
  action: z.string(),
  success: z.boolean(),
  message: z.string().nullable(),
  error: z.string().nullable(),
  elapsed_seconds: z.number().nullable(),
})

/** A job as the API shows it. Loose: an application adds fields of its own, and later releases may too. */
export const job = z.looseObject({
  job_id: id,
  status: jobStatus,
  submitted_at: timestamp,
  started_at: timestamp.nullable(),
  completed_at: timestamp.nullable(),
  results: z.array(stepResult).min(1).nullable().describe('The last result of each step; null until there are any.'),
  error: z.string().nullable(),
  operation: z.string(),
  attempts: count,
  max_attempts: count,
  progress: z.object({ current: count, total: count.nullable() }).nullable(),
  parent_job_id: id.nullable(),
  pipeline_id: id.nullable(),
  payload: z.unknown(),
  result: z.unknown(),
  error_code: z.string().nullable(),
  queue: z.string(),
  priority: z.int().describe('Smaller is sooner.'),
  run_after: timestamp,
  lock_key: z.string().nullable(),
  slot_key: z.string().nullable(),
  is_current: z.boolean(),
  dedup_key: z.string().nullable(),
  children: z.object({ total: count, completed: count, failed: count }).nullable(),
  submitted_by: z.string().nullable(),
  tags: z.array(z.string()),
  run_again_of: id.nullable().describe('The job that this one runs again.'),
  run_again_as: id.nullable().describe('The newest job that runs this one again.'),
  timeout_ms: count.nullable().describe('How long an attempt may take; null for as long as it needs.'),
  start_by: timestamp.nullable().describe('When it fails unless it has started.'),
  attempt_id: id.nullable(),
  locked_by: z.string().nullable().describe('The worker that has it, or had it last.'),
  locked_at: timestamp.nullable(),
  lease_until: timestamp.nullable(),
  deferred_at: timestamp.nullable().describe('Since when it waits for its children.'),
})
export type Job = z.output<typeof job>

/** What a list leaves out unless it is asked for: it may be large. */
export const jobValue = z.enum(['payload', 'result', 'results'])
export type JobValue = z.output<typeof jobValue>

/** A job in a list: without its payload, result and results, unless they were asked for. */
export const jobSummary = job.partial({ payload: true, result: true, results: true })
export type JobSummary = z.output<typeof jobSummary>

const integer = z.int().min(-2_147_483_648).max(2_147_483_647)

const milliseconds = z.int().min(1).max(2_147_483_647)

/** What a job is submitted with. */
export const submission = z
  .strictObject({
    payload: z.unknown().optional().describe('What the schema of the operation asks for.'),
    priority: integer.optional().describe('Smaller is sooner; 0 if left out.'),
    run_after: timeInput.optional().describe('Not before this time.'),
    delay_ms: z.int().min(0).max(2_147_483_647).optional().describe('Not before so many milliseconds from now.'),
    max_attempts: z.int().min(1).max(2_147_483_647).optional(),
    timeout_ms: milliseconds.optional().describe('How long each attempt may take; as the operation says if left out.'),
    start_by: timeInput.optional().describe('Fails unless it has started by this time.'),
    start_within_ms: milliseconds.optional().describe('Fails unless it has started so many milliseconds from now.'),
    queue: queueName.optional(),
    lock_key: key.optional().describe('Only where the operation has keys: caller and makes none itself.'),
    slot_key: key.optional().describe('Likewise.'),
    dedup_key: key.optional().describe('Likewise.'),
    on_locked: z
      .enum(['refuse', 'wait'])
      .optional()
      .describe('While another job holds its lock: refused, or pending until its turn. Else as the operation says.'),
    pipeline_id: idInput.optional(),
    tags: z.array(tag).max(20).optional().describe('Words to find it by.'),
  })
  .refine(({ run_after: at, delay_ms: ms }) => at === undefined || ms === undefined, {
    path: ['delay_ms'],
    message: 'give run_after or delay_ms, not both',
  })
  .refine(({ start_by: at, start_within_ms: ms }) => at === undefined || ms === undefined, {
    path: ['start_within_ms'],
    message: 'give start_by or start_within_ms, not both',
  })
export type Submission = z.input<typeof submission>

/** A list that is written with commas in a query string. */
function commaList<Item extends z.ZodType>(item: Item, max: number) {
  return z.preprocess((value) => (typeof value === 'string' ? value.split(',') : value), z.array(item).min(1).max(max))
}

const include = commaList(jobValue, 3)
  .optional()
  .describe('What else to list of each job. A page then ends before its answer gets too large; see Next-After.')

/** Which jobs are meant: those that fit all of it. */
export const jobFilter = z.strictObject({
  status: z
    .union([jobStatus, commaList(jobStatus, 5)])
    .optional()
    .describe('One, or several with commas.'),
  operation: z
    .union([name, commaList(name, 100)])
    .optional()
    .describe('One, or several with commas.'),
  queue: queueName.optional(),
  error_code: key.optional(),
  worker: key.optional().describe('The worker that has the job, or had it last.'),
  submitted_from: timeInput.optional().describe('Submitted at this time or later.'),
  submitted_before: timeInput.optional(),
  completed_from: timeInput.optional().describe('Ended at this time or later, in whichever way.'),
  completed_before: timeInput.optional(),
  text: key
    .optional()
    .describe('In the lock key or the payload, in upper or lower case. Payloads of more than 16 kB are not read.'),
  parent: idInput.optional().describe('Only children of this job.'),
  pipeline: idInput.optional().describe('Only jobs of this pipeline.'),
  lock_key: key.optional(),
  tag: tag.optional().describe('Only jobs with this tag.'),
})
export type JobFilter = z.output<typeof jobFilter>

export const jobCount = z.object({
  count,
  exact: z.boolean().describe('False where there are more than could be counted: then count is about right.'),
})
export type JobCount = z.output<typeof jobCount>

export const listQuery = jobFilter.extend({
  limit: queryInteger(1, 1000).optional().describe('At most so many; 100 if left out.'),
  after: idInput.optional().describe('Only jobs submitted before this one: where Next-After of the page before is.'),
  include,
})
export type ListQuery = z.output<typeof listQuery>

export const childrenQuery = listQuery.pick({ status: true, limit: true, after: true, include: true })
export type ChildrenQuery = z.output<typeof childrenQuery>

export const pipelineQuery = listQuery
  .pick({ limit: true, include: true })
  .extend({ after: idInput.optional().describe('Only jobs submitted after this one: the last id of the page before.') })
export type PipelineQuery = z.output<typeof pipelineQuery>
