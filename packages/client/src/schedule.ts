import { z } from 'zod'
import { id, key, queryInteger, queueName, timestamp } from './values.ts'

export const catchUp = z
  .enum(['once', 'all', 'skip'])
  .describe('What to do about missed due times: submit once for all of them, for each, or for none.')
export const overlap = z
  .enum(['allow', 'skip', 'queue'])
  .describe('What to do while the job before has not ended: submit another, none, or one that waits.')

const name = z.string().regex(/^[a-z0-9][a-z0-9_.:/-]{0,199}$/)
const maxEveryMs = 366 * 86_400_000

/** What a schedule is made of. Give one of `cron` and `every_ms`. */
export const newSchedule = z.strictObject({
  operation: z.string(),
  payload: z.unknown().optional().describe('An empty object if left out.'),
  cron: z.string().max(500).optional().describe('Five fields, or six with seconds first, or @daily and the like.'),
  time_zone: z.string().max(100).optional().describe('The IANA name of the zone of cron; UTC if left out.'),
  every_ms: z.int().min(1_000).max(maxEveryMs).optional(),
  catch_up: catchUp.optional(),
  overlap: overlap.optional(),
  queue: queueName.optional(),
  priority: z.int32().optional(),
  max_attempts: z.int32().min(1).optional(),
})
export type NewSchedule = z.input<typeof newSchedule>

export const schedule = z.object({
  name,
  operation: z.string(),
  payload: z.unknown(),
  cron: z.string().nullable(),
  time_zone: z.string().nullable(),
  every_ms: z.int().nullable(),
  catch_up: catchUp,
  overlap,
  queue: z.string().nullable(),
  priority: z.int(),
  max_attempts: z.int().nullable(),
  next_times: z.array(timestamp).describe('The next five; none while it is paused.'),
  paused_at: timestamp.nullable(),
  last_due_at: timestamp.nullable(),
  last_outcome: z.enum(['submitted', 'overlapped', 'missed', 'locked', 'duplicate', 'invalid']).nullable(),
  last_job_id: id.nullable(),
  last_error: z.string().nullable(),
  created_at: timestamp,
  updated_at: timestamp,
  updated_by: key.nullable(),
})
export type Schedule = z.output<typeof schedule>

export const schedulesQuery = z.strictObject({
  limit: queryInteger(1, 1000).optional().describe('At most so many; 100 if left out.'),
  after: name.optional().describe('Only schedules behind this name: the last of the page before.'),
})
export type SchedulesQuery = z.output<typeof schedulesQuery>
