import { z } from 'zod'
import { count, id, idInput, key, name, queryInteger, queueName, timeInput, timestamp } from './values.ts'

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
  attempt_id: id.nullable(),
  locked_by: z.string().nullable().describe('The worker that has it, or had it last.'),
  locked_at: timestamp.nullable(),
  lease_until: timestamp.nullable(),
  deferred_at: timestamp.nullable().describe('Since when it waits for its children.'),
})
export type Job = z.output<typeof job>

const integer = z.int().min(-2_147_483_648).max(2_147_483_647)

/** What a job is submitted with. */
export const submission = z
  .strictObject({
    payload: z.unknown().optional().describe('What the schema of the operation asks for.'),
    priority: integer.optional().describe('Smaller is sooner; 0 if left out.'),
    run_after: timeInput.optional().describe('Not before this time.'),
    delay_ms: z.int().min(0).max(2_147_483_647).optional().describe('Not before so many milliseconds from now.'),
    max_attempts: z.int().min(1).max(2_147_483_647).optional(),
    queue: queueName.optional(),
    lock_key: key.optional(),
    slot_key: key.optional(),
    dedup_key: key.optional(),
    pipeline_id: idInput.optional(),
  })
  .refine(({ run_after: at, delay_ms: ms }) => at === undefined || ms === undefined, {
    path: ['delay_ms'],
    message: 'give run_after or delay_ms, not both',
  })
export type Submission = z.input<typeof submission>

export const listQuery = z.strictObject({
  status: jobStatus.optional(),
  operation: name.optional(),
  queue: queueName.optional(),
  parent: idInput.optional().describe('Only children of this job.'),
  pipeline: idInput.optional().describe('Only jobs of this pipeline.'),
  lock_key: key.optional(),
  limit: queryInteger(1, 1000).optional().describe('At most so many; 100 if left out.'),
  after: idInput.optional().describe('Only jobs submitted before this one: the last id of the page before.'),
})
export type ListQuery = z.output<typeof listQuery>

export const childrenQuery = listQuery.pick({ status: true, limit: true, after: true })
