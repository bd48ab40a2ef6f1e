import type { Relations } from '../database/relations.ts'
import { raw, sql, type Sql } from '../database/sql.ts'

/*
 * Attempts past their timeout. A renewal that comes after the timeout gives a lease that ends at one fixed time: the
 * timeout and a minute. Later renewals cannot move it, so a worker that hangs cannot keep its job for ever. No other lease
 * ends at just that time, for they are whole milliseconds long and it is not, so the sweep can tell such an attempt from one whose worker died, which is tried again.
 */

const renewedForMs = 60_000

const deadline = raw("locked_at + timeout_ms * interval '1 millisecond'")

/** Until when an attempt past its timeout is renewed at most. */
export const lastLease: Sql = sql`${deadline} + ${raw(`interval '${renewedForMs} milliseconds 1 microsecond'`)}`

/** True for an attempt that was renewed after its timeout; null for one without a timeout. */
export const isOverdue: Sql = sql`lease_until = ${lastLease}`

/** True once the timeout of the attempt has passed; null for one without a timeout. */
export function timeoutPassed(t: Relations): Sql {
  return sql`${deadline} <= ${t.now}`
}
