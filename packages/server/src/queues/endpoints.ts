import { queueName, routes, type Queue as QueueAnswer } from '@fencepost/client'
import type { Engine, Queue } from '@fencepost/engine'
import { endpoint, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'

/** Queues, paused and resumed one by one. */
export function queueEndpoints(engine: Engine): readonly Endpoint[] {
  return [
    endpoint(routes.listQueues, async () => ({ body: (await engine.queues()).map(queueJson) })),
    endpoint(routes.pauseQueue, async ({ params, caller }) => ({
      body: queueJson(await engine.pauseQueue(checkName(params.name), { by: caller.name })),
    })),
    endpoint(routes.resumeQueue, async ({ params, caller }) => ({
      body: queueJson(await engine.resumeQueue(checkName(params.name), { by: caller.name })),
    })),
  ]
}

// Any queue can be paused, also one that nobody has used yet; an address with anything else leads nowhere.
function checkName(name: string): string {
  if (queueName.safeParse(name).success) return name
  throw new ApiError('queue_not_found', `There can be no queue ${JSON.stringify(name.slice(0, 64))}.`)
}

function queueJson({ queue, pausedAt, pausedBy }: Queue): QueueAnswer {
  return { queue, paused_at: pausedAt ?? null, paused_by: pausedBy ?? null }
}
