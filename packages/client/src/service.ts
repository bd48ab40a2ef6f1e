import { z } from 'zod'
import { jobSummary } from './job.ts'
import { count, id, timestamp } from './values.ts'

// What is not about one job: pipelines, workers, operations, drain and the state of the server.

export const pipeline = z.object({
  pipeline_id: id,
  status: z.enum(['running', 'completed', 'partial', 'failed']),
  jobs: z.array(jobSummary).describe('A page of them in order of submission, children among them.'),
})
export type Pipeline = z.output<typeof pipeline>

export const worker = z.object({
  worker_id: z.string(),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  operations: z.array(z.string()),
  concurrency: count,
  started_at: timestamp,
  seen_at: timestamp,
  lost: z.boolean().describe('Not seen for so long that it must be taken for dead.'),
})
export type Worker = z.output<typeof worker>

/** A queue, and whether claims from it are stopped. */
export const queue = z.object({
  queue: z.string(),
  paused_at: timestamp.nullable().describe('Null while it is not paused.'),
  paused_by: z.string().nullable(),
})
export type Queue = z.output<typeof queue>

export const operation = z.object({
  name: z.string(),
  queue: z.string(),
  max_attempts: count,
  lease_ms: count,
  timeout_ms: count.nullable().describe('How long an attempt may take; null for as long as it needs.'),
  isolation: z.enum(['none', 'process']),
  keys: z.enum(['operation', 'caller']).describe('Whether submissions may give lock, slot and dedup keys.'),
  payload_schema: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe('JSON Schema of the payload; null where its validator cannot tell.'),
})
export type Operation = z.output<typeof operation>

export const drainLevel = z.enum(['off', 'submissions', 'all'])
export type DrainLevel = z.output<typeof drainLevel>

export const drain = z.object({
  level: drainLevel,
  updated_at: timestamp.nullable(),
  updated_by: z.string().nullable(),
})
export type Drain = z.output<typeof drain>

export const drainChange = z.strictObject({ level: drainLevel })

export const health = z.object({ status: z.literal('ok'), version: z.string() })
export type Health = z.output<typeof health>

export const readiness = z.object({
  status: z.literal('ready'),
  schema: z.object({ current: count, latest: count }),
})
export type Readiness = z.output<typeof readiness>
