import { sql, type Sql } from '../database/sql.ts'

/** What became of a write made on behalf of an attempt. */
export type Settled =
  | { settled: true }
  /** The attempt is no longer the current one: it expired, was recovered, was cancelled, or has already ended. */
  | { settled: false; why: 'fence_lost' }

/** Names one attempt. There is no way to settle a job by its id alone. */
export interface Fence {
  jobId: string
  attemptId: string
}

/** An attempt whose settlement was written. */
export interface WrittenRow {
  attempt_id: string
}

/**
 * Rows of exactly these attempts, given as job ids and attempt ids. Two lists and no pairs, which Postgres would join in
 * a loop; it is exact all the same, because an attempt id belongs to one job only. The second is looked up in a hash:
 * with `= any` a prepared statement compares every row with all of them.
 */
export function fencedBy(jobIds: unknown, attemptIds: unknown): Sql {
  return sql`job_id = any(${jobIds}::uuid[])
    and (attempt_id in (select unnest(${attemptIds}::uuid[]))) is true`
}
