import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Db } from '../database/database.ts'
import { planAsUsual } from '../database/prepared.ts'
import { sql } from '../database/sql.ts'
import type { Fence } from '../lifecycle/outcome.ts'

/** The client a handler writes with inside attempt.transaction(). */
export type TransactionClient = Pick<pg.ClientBase, 'query'>

/**
 * Proves the fence and keeps it until the transaction ends: whoever would end the attempt needs the row for himself and
 * waits. `for key share` and no more, so that renewals and events of the same attempt still pass.
 */
export async function holdFence(db: Db, fence: Fence): Promise<boolean> {
  const { t } = db
  const rows = await db.query(
    'transaction.fence',
    sql`select ${planAsUsual} from ${t.liveJobs}
         where job_id = ${fence.jobId} and attempt_id = ${fence.attemptId} and status = 'running'
           for key share`,
  )
  return rows.length > 0
}

const firstDelayMs = 10
const maxDelayMs = 500

/**
 * Resolves when nobody holds the attempt's row any more: Postgres may still be at a statement of a transaction whose
 * connection was cut off, and keeps its locks until that has ended.
 */
export async function untilLetGo(db: Db, fence: Fence): Promise<void> {
  const { t } = db
  const mine = sql`job_id = ${fence.jobId} and attempt_id = ${fence.attemptId} and status = 'running'`
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(maxDelayMs, delayMs * 2)) {
    const free = sql`select ${planAsUsual} from ${t.liveJobs} where ${mine} for update skip locked`
    if ((await db.query('transaction.let_go', free)).length > 0) return
    if ((await db.query('transaction.current', sql`select from ${t.liveJobs} where ${mine}`)).length === 0) return
    await sleep(delayMs)
  }
}
