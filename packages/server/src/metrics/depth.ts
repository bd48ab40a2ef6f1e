import { sql, type EngineDatabase } from '@fencepost/engine'
import type { QueueLabels } from './queue-labels.ts'

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
export async function countDepth(database: EngineDatabase): Promise<Depth[]> {
  const { t } = database
  const rows = await database.query<Omit<Depth, 'oldestSeconds'> & { oldest_seconds: number | null }>(
    'metrics.depth',
    sql`
    select queue, operation,
           count(*) filter (where status = 'pending')::integer as pending,
           count(*) filter (where status = 'pending' and run_after <= now)::integer as due,
           count(*) filter (where status = 'running' and deferred_at is null)::integer as running,
           count(*) filter (where deferred_at is not null)::integer as deferred,
           extract(epoch from max(now) - min(run_after) filter (where status = 'pending' and run_after <= now))
             ::double precision as oldest_seconds
      from ${t.liveJobs}, (select ${t.now} as now) clock
     group by queue, operation`,
  )
  return rows.map(({ oldest_seconds: oldestSeconds, ...rest }) => ({ ...rest, oldestSeconds }))
}

/** The same by label: queues that share one are added up. */
export function withLabels(depths: readonly Depth[], queues: QueueLabels): Depth[] {
  const byLabel = new Map<string, Depth>()
  for (const one of depths) {
    const queue = queues.labelOf(one.queue)
    const key = `${queue} ${one.operation}`
    const sum = byLabel.get(key)
    byLabel.set(key, sum === undefined ? { ...one, queue } : added(sum, one))
  }
  return [...byLabel.values()]
}

function added(sum: Depth, one: Depth): Depth {
  return {
    ...sum,
    pending: sum.pending + one.pending,
    due: sum.due + one.due,
    running: sum.running + one.running,
    deferred: sum.deferred + one.deferred,
    oldestSeconds:
      sum.oldestSeconds === null || one.oldestSeconds === null
        ? (sum.oldestSeconds ?? one.oldestSeconds)
        : Math.max(sum.oldestSeconds, one.oldestSeconds),
  }
}
