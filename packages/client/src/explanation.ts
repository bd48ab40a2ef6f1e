import { z } from 'zod'
import { jobStatus } from './job.ts'
import { count, id, timestamp } from './values.ts'

const reason = z.discriminatedUnion('reason', [
  z.object({ reason: z.literal('finished'), status: jobStatus, completed_at: timestamp }),
  z.object({ reason: z.literal('running'), by: z.string(), attempt_id: id, until: timestamp }),
  z.object({ reason: z.literal('lease_expired'), by: z.string(), at: timestamp }),
  z.object({ reason: z.literal('row_locked'), pid: z.int().nullable(), since: timestamp.nullable() }),
  z.object({
    reason: z.literal('waiting_for_children'),
    ended: count,
    total: count,
    then: z.string().nullable().describe('The part that runs when they have ended.'),
  }),
  z.object({ reason: z.literal('drained') }),
  z.object({ reason: z.literal('queue_paused'), queue: z.string(), by: z.string().nullable(), since: timestamp }),
  z.object({ reason: z.literal('not_due'), until: timestamp }),
  z.object({ reason: z.literal('start_by_passed'), at: timestamp }),
  z.object({
    reason: z.literal('lock_held'),
    lock_key: z.string(),
    job_id: id,
    attempt_id: z.string(),
    until: z.string(),
  }),
  z.object({ reason: z.literal('waiting_for_lock'), lock_key: z.string(), job_id: id.nullable(), ahead: count }),
  z.object({
    reason: z.literal('slot_busy'),
    slot_key: z.string(),
    job_id: id,
    by: z.string().nullable(),
    until: timestamp.nullable(),
  }),
  z.object({ reason: z.literal('no_worker'), operation: z.string() }),
  z.object({ reason: z.literal('queue_not_served'), queue: z.string() }),
  z.object({ reason: z.literal('attempts_spent'), attempts: count, max_attempts: count }),
  z.object({ reason: z.literal('waiting_its_turn'), ahead: count, since: timestamp }),
])

/** Why a job is not running. */
export const explanation = z.object({
  job_id: id,
  status: jobStatus,
  reasons: z.array(reason).describe('Everything that is in the way, the most lasting first.'),
  message: z.string().describe('The same in words.'),
})
export type Explanation = z.output<typeof explanation>
