import { z } from 'zod'
import { jobFilter, jobSummary } from './job.ts'
import { count, id, idInput, timestamp } from './values.ts'

export const act = z.enum(['run_again', 'cancel', 'delete'])
export type Act = z.output<typeof act>

/** An act, and the filter of the jobs that it is to be done to. */
export const newPreview = z.strictObject({ act, filter: jobFilter })
export type NewPreview = z.input<typeof newPreview>

export const preview = z.object({
  token: id.describe('Starts the act on exactly this filter, within a minute.'),
  act,
  count: count.describe('How many jobs it would be done to.'),
  sample: z.array(jobSummary).describe('Up to ten of them, those that would be first.'),
  expires_at: timestamp,
})
export type Preview = z.output<typeof preview>

export const bulkStart = z.strictObject({ token: idInput })

export const bulkAct = z.object({
  bulk_act_id: id,
  act,
  state: z.enum(['running', 'completed', 'stopped']),
  previewed_count: count,
  done: count.describe('How many jobs have been acted on.'),
  refused: count.describe('How many could not be: a lock or dedup key is held, or they have changed meanwhile.'),
  submitted_by: z.string().nullable(),
  started_at: timestamp,
  ended_at: timestamp.nullable(),
})
export type BulkAct = z.output<typeof bulkAct>
