import { routes, type NewSchedule, type Schedule as ScheduleAnswer } from '@fencepost/client'
import type { Engine, Schedule, ScheduleOptions } from '@fencepost/engine'
import { callerKey, endpoint, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import { pageOf } from '../jobs/page.ts'
import { Turns } from '../turns.ts'

const listedAtOnce = 4

/** Jobs that are submitted at set times. */
export function scheduleEndpoints(
  { schedules }: Engine,
  { maxAnswerBytes: maxBytes }: { maxAnswerBytes: number },
): readonly Endpoint[] {
  const turns = new Turns(listedAtOnce)
  return [
    endpoint(routes.listSchedules, async ({ query, ...call }) => {
      const { schedules: found, more } = await turns.take(callerKey(call), () => schedules.page({ ...query, maxBytes }))
      const { items, headers } = pageOf(found, more, maxBytes, { jsonOf: scheduleJson, idOf: ({ name }) => name })
      return { json: `[${items.join(',')}]`, headers }
    }),
    endpoint(routes.getSchedule, async ({ params }) => ({
      body: found(params.name, await schedules.get(params.name)),
    })),
    endpoint(routes.putSchedule, async ({ params, body, caller }) => {
      const { operation, payload = {} } = body
      const put = await schedules.put(params.name, operation, payload, { ...optionsOf(body), by: caller.name })
      return { body: scheduleJson(put) }
    }),
    endpoint(routes.deleteSchedule, async ({ params }) => {
      if (!(await schedules.delete(params.name))) throw notFound(params.name)
      return { body: undefined }
    }),
    endpoint(routes.pauseSchedule, async ({ params, caller }) => ({
      body: found(params.name, await schedules.pause(params.name, { by: caller.name })),
    })),
    endpoint(routes.resumeSchedule, async ({ params, caller }) => ({
      body: found(params.name, await schedules.resume(params.name, { by: caller.name })),
    })),
  ]
}

function optionsOf(body: NewSchedule): ScheduleOptions {
  const options = {
    cron: body.cron,
    timeZone: body.time_zone,
    everyMs: body.every_ms,
    catchUp: body.catch_up,
    overlap: body.overlap,
    queue: body.queue,
    priority: body.priority,
    maxAttempts: body.max_attempts,
  }
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

function found(name: string, schedule: Schedule | undefined): ScheduleAnswer {
  if (schedule === undefined) throw notFound(name)
  return scheduleJson(schedule)
}

function notFound(name: string): ApiError {
  return new ApiError('schedule_not_found', `There is no schedule ${name}.`, { details: { schedule: name } })
}

function scheduleJson({ rule, ...schedule }: Schedule): ScheduleAnswer {
  return {
    name: schedule.name,
    operation: schedule.operation,
    payload: schedule.payload,
    cron: 'cron' in rule ? rule.cron : null,
    time_zone: 'cron' in rule ? rule.timeZone : null,
    every_ms: 'cron' in rule ? null : rule.everyMs,
    catch_up: schedule.catchUp,
    overlap: schedule.overlap,
    queue: schedule.queue ?? null,
    priority: schedule.priority,
    max_attempts: schedule.maxAttempts ?? null,
    next_times: [...schedule.nextTimes],
    paused_at: schedule.pausedAt ?? null,
    last_due_at: schedule.lastDueAt ?? null,
    last_outcome: schedule.lastOutcome ?? null,
    last_job_id: schedule.lastJobId ?? null,
    last_error: schedule.lastError ?? null,
    created_at: schedule.createdAt,
    updated_at: schedule.updatedAt,
    updated_by: schedule.updatedBy ?? null,
  }
}
