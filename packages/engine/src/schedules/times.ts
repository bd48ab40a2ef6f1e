import { CronExpressionParser } from 'cron-parser'
import { FencepostError } from '../errors.ts'

/*
 * When a schedule is due: by a cron expression on the clock of a time zone, or every so many milliseconds.
 *
 * When clocks go forward, a time in the missing hour is due at the same minute of the hour after it. When they go back, a
 * time that comes twice is due the first time only; one that is due every so many minutes goes on through both hours.
 */

/** A rule for due times. */
export type Rule = { cron: string; timeZone: string } | { everyMs: number }

const fieldCounts = [5, 6]
const macro = /^@[a-z]+$/
/** The parser draws a number for it, another one each time. */
const hashed = /(^|[\s,])H([/(\s,]|$)/
/** Due times that are gone through one by one: from before a change of the clocks they are right after it, too. */
const maxSteps = 1_000

/** Throws unless there are times by this rule. */
export function checkRule(rule: Rule, name: string): Rule {
  if ('everyMs' in rule) return rule
  const { cron, timeZone } = rule
  try {
    new Intl.DateTimeFormat('en', { timeZone })
  } catch {
    throw invalid(name, `${JSON.stringify(timeZone)} is not a time zone. Give an IANA name like Europe/Berlin, or UTC.`)
  }
  const fields = cron.trim().split(/\s+/)
  // The parser takes missing fields for *.
  if (!fieldCounts.includes(fields.length) && !macro.test(cron.trim())) {
    throw invalid(
      name,
      `${JSON.stringify(cron)} has ${fields.length} fields. Give 5, or 6 with seconds first, or @daily.`,
    )
  }
  if (hashed.test(cron)) throw invalid(name, `${JSON.stringify(cron)} has an H. Give the number itself.`)
  try {
    CronExpressionParser.parse(cron, { tz: timeZone }).next()
  } catch (cause) {
    throw invalid(name, `${JSON.stringify(cron)} is not a cron expression: ${(cause as Error).message}.`, cause)
  }
  return rule
}

/** The first due time after this one. */
export function nextTime(rule: Rule, afterMs: number): number {
  if ('everyMs' in rule) return afterMs + rule.everyMs
  const { cron, timeZone } = rule
  return CronExpressionParser.parse(cron, { tz: timeZone, currentDate: new Date(afterMs) })
    .next()
    .getTime()
}

/** The due times from `firstMs` until now, at most `limit` of them, and the first one that is left. */
export function dueTimes(
  rule: Rule,
  firstMs: number,
  nowMs: number,
  limit: number,
): { dueMs: readonly number[]; nextMs: number } {
  const dueMs: number[] = []
  let nextMs = firstMs
  while (nextMs <= nowMs && dueMs.length < limit) {
    dueMs.push(nextMs)
    nextMs = nextTime(rule, nextMs)
  }
  return { dueMs, nextMs }
}

/** The last due time until now, and the first one after it. */
export function lastDueTime(rule: Rule, firstMs: number, nowMs: number): { dueMs: number; nextMs: number } {
  if ('everyMs' in rule) {
    const { everyMs } = rule
    const dueMs = firstMs + Math.floor((nowMs - firstMs) / everyMs) * everyMs
    return { dueMs, nextMs: dueMs + everyMs }
  }
  let last = firstMs
  for (let step = 0; step < maxSteps; step += 1) {
    const nextMs = nextTime(rule, last)
    if (nextMs > nowMs) return { dueMs: last, nextMs }
    last = nextMs
  }
  const { cron, timeZone } = rule
  // prev() is before its date, so the last one until now is before the millisecond after now.
  const parsed = CronExpressionParser.parse(cron, { tz: timeZone, currentDate: new Date(nowMs + 1) })
  return { dueMs: Math.max(last, parsed.prev().getTime()), nextMs: nextTime(rule, nowMs) }
}

function invalid(name: string, why: string, cause?: unknown): FencepostError {
  return new FencepostError('schedule_invalid', `The schedule ${name} cannot be kept: ${why}`, {
    details: { schedule: name },
    ...(cause !== undefined && { cause }),
  })
}
