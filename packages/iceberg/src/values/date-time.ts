import { IcebergError } from '../errors.ts'

const dayMs = 86_400_000

/** Days since 1970 as ISO text. */
export function formatDate(days: number): string {
  const date = new Date(days * dayMs)
  if (Number.isNaN(date.getTime())) throw new IcebergError('value_invalid', `Day ${days} is out of the range of dates`)
  const text = date.toISOString().split('T')[0] ?? ''
  // toISOString writes years beyond 9999 with six digits and a sign; ISO text needs no more digits than the year has.
  return text.replace(/^([+-])0*(\d{4,})-/, '$1$2-')
}

export function parseDate(text: string): number {
  const [, sign = '', year = '', month = '', day = ''] = /^([+-]?)(\d{4,6})-(\d\d)-(\d\d)$/.exec(text) ?? []
  const date = new Date(0)
  date.setUTCFullYear(Number(`${sign}${year}`), Number(month) - 1, Number(day))
  const days = date.getTime() / dayMs
  if (year === '' || date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) {
    throw new IcebergError('value_invalid', `"${text}" is not a date`)
  }
  return days
}

/** A time of day given in units of 10^-digits seconds; the fraction is written in threes, as far as it is not zero. */
export function formatTime(units: bigint, digits: 6 | 9): string {
  const perSecond = 10n ** BigInt(digits)
  const seconds = units / perSecond
  const parts = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n]
  const fraction = String(units % perSecond)
    .padStart(digits, '0')
    .replace(/(000)+$/, '')
  return parts.map((part) => String(part).padStart(2, '0')).join(':') + (fraction === '' ? '' : `.${fraction}`)
}

export function parseTime(text: string, digits: 6 | 9): bigint {
  const [, hours, minutes, seconds = '0', fraction = ''] =
    /^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?$/.exec(text) ?? []
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) {
    throw new IcebergError('value_invalid', `"${text}" is not a time of day`)
  }
  if (fraction.slice(digits).replaceAll('0', '') !== '') {
    throw new IcebergError('value_invalid', `"${text}" is more exact than 10^-${digits} seconds`)
  }
  const whole = BigInt(Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds))
  return whole * 10n ** BigInt(digits) + BigInt(fraction.slice(0, digits).padEnd(digits, '0'))
}

/** Units of 10^-digits seconds since 1970 as ISO text; `zone` adds +00:00. */
export function formatTimestamp(units: bigint, digits: 6 | 9, zone: boolean): string {
  const perDay = 86_400n * 10n ** BigInt(digits)
  const time = ((units % perDay) + perDay) % perDay
  return `${formatDate(Number((units - time) / perDay))}T${formatTime(time, digits)}${zone ? '+00:00' : ''}`
}

export function parseTimestamp(text: string, digits: 6 | 9, zone: boolean): bigint {
  const [, date, time, offset] = /^([^T]+)T([\d:.]+)(Z|[+-]\d\d:\d\d(?::\d\d)?)?$/.exec(text) ?? []
  if (date === undefined || time === undefined || (offset !== undefined) !== zone) {
    const form = zone ? 'a timestamp with the zone +00:00' : 'a timestamp without a zone'
    throw new IcebergError('value_invalid', `"${text}" is not ${form}`)
  }
  if (zone && offset !== 'Z' && offset !== '+00:00') {
    throw new IcebergError('value_invalid', `"${text}" has another zone than +00:00`)
  }
  return BigInt(parseDate(date)) * 86_400n * 10n ** BigInt(digits) + parseTime(time, digits)
}
