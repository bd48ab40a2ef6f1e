import { raw, type Sql } from './sql.ts'

/**
 * The columns of live_jobs, for a statement that takes whole rows.
 *
 * No statement says `*`. Processes of the previous release keep running while a migration adds a column: a prepared
 * statement whose result would then change fails with 0A000, and a new column can make another name ambiguous.
 */
export const liveJobColumns: Sql = raw(`
  job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts, locked_by,
  locked_at, lease_until, lock_key, slot_key, dedup_key, parent_job_id, pipeline_id, children_total, children_fail_at,
  deferred_at, progress_current, progress_total, result, error, error_code, submitted_at, submitted_by, started_at,
  submitted_event_id, started_event_id, tags, timeout_ms, start_by, waiting_run_after, next_part`)
