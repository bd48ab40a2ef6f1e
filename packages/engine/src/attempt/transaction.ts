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
