import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'

/** How many unfinished jobs there are, by queue and operation. */
export interface Depth {
  queue: string
  operation: string
  pending: number
  due: number
  running: number
  deferred: number
  oldestSeconds: number | null
}

/** Counts every unfinished job: as slow as there are many, so nobody waits for it. */
export async function countDepth(db: Db): Promise<Depth[]> {
  const { t } = db
  const rows = await db.query<Omit<Depth, 'oldestSeconds'> & { oldest_seconds: number | null }>(
    'metrics.depth',
    sql`
    select queue, split_part(operation, '/', 1) as operation,
           count(*) filter (where status = 'pending')::integer as pending,
           count(*) filter (where status = 'pending' and run_after <= now)::integer as due,
           count(*) filter (where status = 'running' and deferred_at is null)::integer as running,
           count(*) filter (where deferred_at is not null)::integer as deferred,
           extract(epoch from max(now) - min(run_after) filter (where status = 'pending' and run_after <= now))
             ::double precision as oldest_seconds
      from ${t.liveJobs}, (select ${t.now} as now) clock
     group by 1, 2`,
  )
  return rows.map(({ oldest_seconds: oldestSeconds, ...rest }) => ({ ...rest, oldestSeconds }))
}
