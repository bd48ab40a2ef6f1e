import { z } from 'zod'
import { id, queryInteger, timestamp } from './values.ts'

/** A line in a job's history. */
export const jobEvent = z.object({
  id: z.string().regex(/^\d+$/).describe('Unique; ascends within a job, but for those that were written side by side.'),
  job_id: id,
  attempt_id: id.nullable(),
  ts: timestamp,
  level: z.enum(['info', 'warning', 'error']),
  event: z.string(),
  message: z.string().nullable(),
  fields: z.record(z.string(), z.unknown()).nullable(),
})
export type JobEvent = z.output<typeof jobEvent>

export const eventsQuery = z.strictObject({
  after: z
    .string()
    .regex(/^\d{1,18}$/)
    .optional()
    .describe('Only events after this one.'),
  limit: queryInteger(1, 10_000).optional().describe('At most so many; 1000 if left out. Not for a stream.'),
})

/** What ends a stream, as the data of its last event. */
export const streamClosed = z.object({
  reason: z
    .enum(['job_finished', 'shutdown', 'too_slow', 'unavailable', 'token_revoked', 'token_needed'])
    .describe('After all but job_finished, resume with Last-Event-ID; after the last two, with another token.'),
})
export type StreamClosed = z.output<typeof streamClosed>

/** The name of the event that ends a stream. */
export const streamClosedEvent = 'stream.closed'

/** The events after which a job never changes again. */
export const terminalEvents: readonly string[] = ['job.completed', 'job.failed', 'job.cancelled']
