import type { Field, Type } from '../schema/type.ts'
import { viewOf } from '../values/bytes.ts'
import { formatDate } from '../values/date-time.ts'
import { formatDecimal } from '../values/decimal.ts'
import type { RowMap, RowStruct, RowValue, ScannedRow } from './row-value.ts'

/** A value as plain JSON. */
export type PlainJson = string | number | boolean | null | PlainJson[] | { [name: string]: PlainJson }

/**
 * A row as JSON that loses nothing, alike for every reader.
 * boolean, int, string: as they are. long, decimal: text. float, double: a number, or the text NaN, Infinity, -Infinity,
 * -0.0. date: 2024-02-29. time: 12:00:00.000001. timestamp: 2024-02-29T12:00:00.000001, with Z if it has a zone, with
 * nine digits if it counts nanoseconds. Years outside 0000 to 9999 have a sign and six digits. uuid: lower case. fixed,
 * binary: hex. struct: an object. list: an array. map: an array of [key, value].
 */
export function rowToJson(fields: readonly Pick<Field, 'name' | 'type'>[], row: ScannedRow): Record<string, PlainJson> {
  return Object.fromEntries(fields.map(({ name, type }) => [name, toJson(type, row[name] ?? null)]))
}

function toJson(type: Type, value: RowValue): PlainJson {
  if (value === null) return null
  switch (type.type) {
    case 'struct':
      return rowToJson(type.fields, value as RowStruct)
    case 'list':
      return (value as readonly RowValue[]).map((item) => toJson(type.element, item))
    case 'map':
      return (value as RowMap).map(([key, item]) => [toJson(type.key, key), toJson(type.value, item)])
    case 'float':
    case 'double':
      return numberToJson(value as number)
    case 'long':
      return (value as bigint).toString()
    case 'decimal':
      return formatDecimal(value as bigint, type.scale)
    case 'date':
      return formatDate(value as number, 6)
    case 'time':
      return timeText(value as bigint, 6)
    case 'timestamp':
    case 'timestamptz':
      return timestampText(value as bigint, 6) + (type.type === 'timestamptz' ? 'Z' : '')
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return timestampText(value as bigint, 9) + (type.type === 'timestamptz_ns' ? 'Z' : '')
    case 'fixed':
    case 'binary':
      return viewOf(value as Uint8Array).toString('hex')
    default:
      return value as string | number | boolean
  }
}

function numberToJson(value: number): PlainJson {
  if (Object.is(value, -0)) return '-0.0'
  return Number.isFinite(value) ? value : String(value)
}

function timeText(units: bigint, digits: 6 | 9): string {
  const perSecond = 10n ** BigInt(digits)
  const seconds = units / perSecond
  const parts = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) => padded(part, 2))
  return `${parts.join(':')}.${padded(units % perSecond, digits)}`
}

function timestampText(units: bigint, digits: 6 | 9): string {
  const perDay = 86_400n * 10n ** BigInt(digits)
  const time = ((units % perDay) + perDay) % perDay
  return `${formatDate(Number((units - time) / perDay), 6)}T${timeText(time, digits)}`
}

function padded(value: number | bigint, digits: number): string {
  return String(value).padStart(digits, '0')
}
