import type { Depth } from '@fencepost/engine'
import type { QueueLabels } from './queue-labels.ts'

/** Unfinished jobs by label: queues that share one are added up. */
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
