import { FencepostError } from './errors.ts'

const maxKeyLength = 512
export const maxInteger = 2_147_483_647

/** A whole number in a range, or a coded error that names it. */
export function checkInteger(value: number, what: string, min: number, max = maxInteger): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new FencepostError(
    'number_invalid',
    `${what} is ${String(value)}; give a whole number from ${min} to ${max}.`,
    {
      details: { what, value, min, max },
    },
  )
}

/** A key: a non-empty string of bounded length, or undefined. */
export function checkKey(value: string | undefined, what: string): string | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string' && value.length > 0 && value.length <= maxKeyLength && isStorable(value)) return value
  const problem = typeof value !== 'string' ? `a ${typeof value}` : value.length === 0 ? 'empty' : describeLength(value)
  throw new FencepostError('key_invalid', `${what} is ${problem}; give a string of 1 to ${maxKeyLength} characters.`, {
    details: { what, maxLength: maxKeyLength },
  })
}

/** How many tags a job may have, and how long each may be. */
const tagLimits = { max: 20, maxLength: 100 } as const

/** Tags, each once, in order; an error with a code if there are too many, or one cannot be used. */
export function checkTags(tags: readonly string[] = []): string[] {
  const distinct = [...new Set(tags)].sort()
  if (distinct.length > tagLimits.max) {
    throw new FencepostError('key_invalid', `${distinct.length} tags are given; give at most ${tagLimits.max}.`)
  }
  return distinct.map((tag) => checkTag(tag))
}

/** One tag, checked. */
export function checkTag(tag: string): string {
  const checked = checkKey(tag, 'tag') as string
  if (checked.length <= tagLimits.maxLength) return checked
  throw new FencepostError(
    'key_invalid',
    `A tag is ${checked.length} characters long; give at most ${tagLimits.maxLength}.`,
  )
}

const timePattern = /^((\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/

// JavaScript takes the 31st of February for a day in March, Postgres does not take it; nor the year 0.
function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`)
  return !text.startsWith('0000') && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}

/** A time from outside, a Date or an RFC 3339 string with its offset, as RFC 3339 in UTC. */
export function checkTime(value: Date | string, what: string): string {
  const text = value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString() : value
  const match = typeof text === 'string' ? timePattern.exec(text) : null
  const utc = match === null ? undefined : inUtc(match as unknown as Written)
  if (utc !== undefined) return utc
  throw new FencepostError(
    'time_invalid',
    `${what} is ${String(value)}; give a Date or a time such as 2026-04-25T14:35:00Z, in the years 1 to 9999 of UTC.`,
    { details: { what } },
  )
}

type Written = readonly [whole: string, seconds: string, date: string, fraction: string | undefined, offset: string]

// The instant counts, not the text: an offset can move the year out of what RFC 3339 can write, and Postgres takes no
// offset of 16 hours and more. Microseconds are all that it keeps; rounding up could make the year 10000.
function inUtc([, seconds, date, fraction = '', offset]: Written): string | undefined {
  const instant = Date.parse(seconds + offset)
  if (Number.isNaN(instant) || !isDate(date)) return undefined
  const utc = new Date(instant).toISOString()
  return /^(?!0000)\d{4}-/.test(utc) ? `${utc.slice(0, 19)}${fraction.slice(0, 7)}Z` : undefined
}

/** Text Postgres can store: no null character, no half of a surrogate pair. */
function isStorable(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed()
}

/** Free text from outside (an error's message, say), made storable and bounded. */
export function storableText(text: string, maxLength = 10_000): string {
  const clean = text.replaceAll('\u0000', '\ufffd').toWellFormed()
  return clean.length <= maxLength ? clean : `${clean.slice(0, maxLength - 1).toWellFormed()}…`
}

function describeLength(value: string): string {
  return isStorable(value) ? `${value.length} characters long` : 'not valid text (a null character or a broken pair)'
}
