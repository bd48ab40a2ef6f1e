import { z } from 'zod'
import { newSchedule, schedule, schedulesQuery } from './schedule.ts'
import type { Route } from './route.ts'

const schedulePath = z.object({ name: z.string() })

/** Schedules, one by one and in pages. */
export const scheduleRoutes = {
  listSchedules: {
    method: 'GET',
    path: '/schedules',
    summary: 'The schedules, by name, with their next due times',
    tag: 'schedules',
    role: 'viewer',
    query: schedulesQuery,
    status: 200,
    answer: z.array(schedule),
    errors: [],
  },
  getSchedule: {
    method: 'GET',
    path: '/schedules/{name}',
    summary: 'One schedule',
    tag: 'schedules',
    role: 'viewer',
    params: schedulePath,
    status: 200,
    answer: schedule,
    errors: ['schedule_not_found'],
  },
  putSchedule: {
    method: 'PUT',
    path: '/schedules/{name}',
    summary: 'Makes a schedule, or changes it; while its rule is the same, its next due time stays',
    tag: 'schedules',
    role: 'operator',
    params: schedulePath,
    body: newSchedule,
    status: 200,
    answer: schedule,
    errors: ['payload_invalid', 'operation_unknown'],
  },
  deleteSchedule: {
    method: 'DELETE',
    path: '/schedules/{name}',
    summary: 'Removes a schedule; jobs that it has submitted stay',
    tag: 'schedules',
    role: 'operator',
    params: schedulePath,
    status: 204,
    answer: null,
    errors: ['schedule_not_found'],
  },
  pauseSchedule: {
    method: 'POST',
    path: '/schedules/{name}/pause',
    summary: 'Stops a schedule until it is resumed',
    tag: 'schedules',
    role: 'operator',
    params: schedulePath,
    status: 200,
    answer: schedule,
    errors: ['schedule_not_found'],
  },
  resumeSchedule: {
    method: 'POST',
    path: '/schedules/{name}/resume',
    summary: 'Lets a schedule go on, from now: what was due while it was paused is not caught up',
    tag: 'schedules',
    role: 'operator',
    params: schedulePath,
    status: 200,
    answer: schedule,
    errors: ['schedule_not_found'],
  },
} as const satisfies Record<string, Route>
