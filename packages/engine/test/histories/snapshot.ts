import type pg from 'pg'
import type { Status } from './model.ts'

/** A row of live_jobs or finished_jobs; what only one of them has is undefined in the other. */
export interface JobRow {
  job_id: string
  payload: { job: number }
  status: Status
  priority: number
  run_after: string
  attempt_id: string | null
  attempts: number
  max_attempts: number
  locked_by: string | null
  locked_at: string | null
  lease_until?: string | null
  lock_key: string | null
  slot_key: string | null
  dedup_key: string | null
  parent_job_id: string | null
  pipeline_id: string | null
  children_total: number | null
  children_fail_at?: number | null
  deferred_at: string | null
  progress_current: number | null
  result: unknown
  error: string | null
  error_code: string | null
  completed_at?: string
  deleted_at?: string | null
}

export interface EventRow {
  id: number
  job_id: string
  attempt_id: string | null
  ts: string
  event: string
  fields: { verb?: string } | null
}

export interface LockRow {
  lock_key: string
  job_id: string
  attempt_id: string | null
  expires_at: string | null
}

export interface SlotRow {
  slot_key: string
  job_id: string
  attempt_id: string | null
  held_until: string | null
}

export interface StepRow {
  job_id: string
  attempt_id: string
  ordinal: number
  step: string
  success: boolean
  result: unknown
}

/** Everything that is in the database, at one moment. Times are text that sorts like the times. */
export interface Snapshot {
  clock: string
  live: JobRow[]
  finished: JobRow[]
  /** What only the public views say: `jobs`, `job_queue` and, as `events`, `job_events`. */
  seen: {
    job_id: string
    is_current: boolean
    children_completed: number | null
    children_failed: number | null
  }[]
  queue: { job_id: string; claimed_at: string | null }[]
  events: EventRow[]
  locks: LockRow[]
  slots: SlotRow[]
  steps: StepRow[]
  settings: { key: string; value: string }[]
  ledger: { attempt_id: string }[]
}

const rowsOf = (relation: string, order: string) =>
  `(select coalesce(json_agg(r order by ${order}), '[]') from ${relation} r)`

// One round trip for all of it, and planned once.
const statement = `
  select json_build_object(
    'clock', fencepost.clock(),
    'live', ${rowsOf('fencepost.live_jobs', 'job_id')},
    'finished', ${rowsOf('fencepost.finished_jobs', 'job_id')},
    'seen', ${rowsOf('(select job_id, is_current, children_completed, children_failed from fencepost.jobs)', 'job_id')},
    'queue', ${rowsOf('(select job_id, claimed_at from fencepost.job_queue)', 'job_id')},
    'events', ${rowsOf('fencepost.job_events', 'id')},
    'locks', ${rowsOf('fencepost.resource_locks', 'lock_key')},
    'slots', ${rowsOf('fencepost.slots', 'slot_key')},
    'steps', ${rowsOf('fencepost.job_steps', 'id')},
    'settings', ${rowsOf('fencepost.settings', 'key')},
    'ledger', ${rowsOf('ledger', 'id')}
  )::text as snapshot`

export async function readSnapshot(client: pg.Client): Promise<Snapshot> {
  const { rows } = await client.query<{ snapshot: string }>({ name: 'snapshot', text: statement })
  return JSON.parse(rows[0]?.snapshot ?? '') as Snapshot
}

export const noSnapshot: Snapshot = {
  clock: '',
  live: [],
  finished: [],
  seen: [],
  queue: [],
  events: [],
  locks: [],
  slots: [],
  steps: [],
  settings: [],
  ledger: [],
}
