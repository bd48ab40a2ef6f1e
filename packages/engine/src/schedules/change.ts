import { checkInteger, checkKey, maxInteger } from '../check.ts'
import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { FencepostError } from '../errors.ts'
import { encodeJson } from '../json.ts'
import { checkQueue, parsePayload, type Operation } from '../operation.ts'
import {
  listSchedules,
  ruleOf,
  scheduleColumns,
  scheduleFromRow,
  type CatchUp,
  type Overlap,
  type Schedule,
  type ScheduleRow,
} from './schedule.ts'
import { checkRule, nextTime, type Rule } from './times.ts'

/** When jobs are submitted, and how. Give `cron`, or `everyMs`. */
export interface ScheduleOptions {
  /** Five fields, or six with seconds first, or @hourly, @daily, @weekly, @monthly, @yearly. */
  cron?: string
  /** The IANA name of the zone whose clock `cron` is read on. Default: UTC. */
  timeZone?: string
  everyMs?: number
  /** Default: once. */
  catchUp?: CatchUp
  /** Default: skip. */
  overlap?: Overlap
  queue?: string
  priority?: number
  maxAttempts?: number
  by?: string
}

const scheduleDefaults = { timeZone: 'UTC', catchUp: 'once', overlap: 'skip', priority: 0 } as const
const minEveryMs = 1_000
const maxEveryMs = 366 * 86_400_000
const namePattern = /^[a-z0-9][a-z0-9_.:/-]{0,199}$/
const catchUps: readonly string[] = ['once', 'all', 'skip']
const overlaps: readonly string[] = ['allow', 'skip', 'queue']

/**
 * Makes the schedule, or changes it. A changed rule counts from now; otherwise the next due time stays. In a transaction:
 * the row is locked before the clock is read, so that no due time of the old rule can be dealt with in between.
 */
export async function putSchedule(
  db: Db,
  operation: Operation,
  wanted: { name: string; payload: unknown; options: ScheduleOptions; maxPayloadBytes: number },
): Promise<Schedule> {
  const { t } = db
  const { payload, options } = wanted
  const name = checkName(wanted.name)
  const rule = ruleFrom(options, name)
  const catchUp = checkChoice(options.catchUp ?? scheduleDefaults.catchUp, catchUps, 'catchUp')
  const overlap = checkChoice(options.overlap ?? scheduleDefaults.overlap, overlaps, 'overlap')
  await parsePayload(operation, payload)
  const encoded = encodeJson(payload, `The payload for operation ${operation.name}`, wanted.maxPayloadBytes)
  const queue = options.queue === undefined ? null : checkQueue(options.queue)
  const priority = checkInteger(options.priority ?? scheduleDefaults.priority, 'priority', -maxInteger)
  const maxAttempts = options.maxAttempts === undefined ? null : checkInteger(options.maxAttempts, 'maxAttempts', 1)
  const by = checkKey(options.by, 'by') ?? null
  const { cron, timeZone, everyMs } = { cron: null, timeZone: null, everyMs: null, ...rule }
  await db.query('schedules.lock', sql`select from ${t.schedules} where name = ${name} for update`)
  const nextMs = nextTime(rule, await nowMs(db))
  const [row] = await db.query<ScheduleRow>(
    'schedules.put',
    sql`
    insert into ${t.schedules} as kept (name, operation, payload, queue, priority, max_attempts, cron, time_zone, every_ms,
                                        catch_up, overlap, next_at, created_at, updated_at, updated_by)
    values (${name}, ${operation.name}, ${encoded}::jsonb, ${queue}, ${priority}, ${maxAttempts}, ${cron}, ${timeZone},
            ${everyMs}, ${catchUp}, ${overlap}, to_timestamp(${nextMs}::double precision / 1000), ${t.now}, ${t.now}, ${by})
    on conflict (name) do update
       set operation = excluded.operation, payload = excluded.payload, queue = excluded.queue,
           priority = excluded.priority, max_attempts = excluded.max_attempts, cron = excluded.cron,
           time_zone = excluded.time_zone, every_ms = excluded.every_ms, catch_up = excluded.catch_up,
           overlap = excluded.overlap, updated_at = excluded.updated_at, updated_by = excluded.updated_by,
           next_at = case when (kept.cron, kept.time_zone, kept.every_ms)
                               is not distinct from (excluded.cron, excluded.time_zone, excluded.every_ms)
                          then kept.next_at else excluded.next_at end
    returning ${scheduleColumns}`,
  )
  return scheduleFromRow(row as ScheduleRow)
}

/** Stops it, or lets it go on. What was due while it was paused is not caught up. Undefined where there is none. */
export async function pauseSchedule(
  db: Db,
  name: string,
  paused: boolean,
  by: string | undefined,
): Promise<Schedule | undefined> {
  const { t } = db
  const [kept] = await db.query<ScheduleRow>(
    'schedules.lock',
    sql`select ${scheduleColumns} from ${t.schedules} where name = ${name} for update`,
  )
  if (kept === undefined) return undefined
  const isPaused = kept.paused_at !== null
  if (isPaused === paused) return scheduleFromRow(kept)
  const nextMs = paused ? kept.next_ms : nextTime(ruleOf(kept), await nowMs(db))
  await db.query(
    'schedules.pause',
    sql`update ${t.schedules}
           set paused_at = case when ${paused}::boolean then ${t.now} end, updated_at = ${t.now}, updated_by = ${by ?? null},
               next_at = to_timestamp(${nextMs}::double precision / 1000)
         where name = ${name}`,
  )
  const [changed] = await listSchedules(db, name)
  return changed
}

/** Whether there was such a schedule. Jobs that it has submitted stay. */
export async function deleteSchedule(db: Db, name: string): Promise<boolean> {
  const { t } = db
  const rows = await db.query('schedules.delete', sql`delete from ${t.schedules} where name = ${name} returning name`)
  return rows.length > 0
}

async function nowMs(db: Db): Promise<number> {
  const [row] = await db.query<{ now_ms: number }>(
    'schedules.now',
    sql`select (extract(epoch from ${db.t.now}) * 1000)::double precision as now_ms`,
  )
  return Math.floor((row as { now_ms: number }).now_ms)
}

function ruleFrom({ cron, timeZone, everyMs }: ScheduleOptions, name: string): Rule {
  if ((cron === undefined) === (everyMs === undefined)) {
    throw new FencepostError('schedule_invalid', `The schedule ${name} needs one of cron and everyMs.`)
  }
  if (everyMs !== undefined) {
    if (timeZone !== undefined) {
      throw new FencepostError('schedule_invalid', `The schedule ${name} has everyMs, which knows no timeZone.`)
    }
    return { everyMs: checkInteger(everyMs, 'everyMs', minEveryMs, maxEveryMs) }
  }
  return checkRule({ cron: cron as string, timeZone: timeZone ?? scheduleDefaults.timeZone }, name)
}

/** Whether there can be a schedule of this name. */
export function isScheduleName(name: string): boolean {
  return typeof name === 'string' && namePattern.test(name)
}

function checkName(name: string): string {
  if (isScheduleName(name)) return name
  throw new FencepostError(
    'schedule_invalid',
    `${JSON.stringify(name)} is not a name for a schedule: lower-case letters, digits and _ . : / -, at most 200.`,
  )
}

function checkChoice<Choice extends string>(value: Choice, choices: readonly string[], option: string): Choice {
  if (choices.includes(value)) return value
  throw new FencepostError('options_invalid', `${option} is ${String(value)}; give one of ${choices.join(', ')}.`)
}
