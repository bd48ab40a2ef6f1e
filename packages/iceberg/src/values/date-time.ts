import { IcebergError } from '../errors.ts'

const dayMs = 86_400_000

/** The date of a day since 1970, of any year: the dates of JavaScript end sooner than those of the format. */
export function civilDate(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const leaps = Math.floor(dayOfEra / 1460) - Math.floor(dayOfEra / 36_524) + Math.floor(dayOfEra / 146_096)
  const yearOfEra = Math.floor((dayOfEra - leaps) / 365)
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  // The year begins in March here, so that the leap day is its last.
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153)
  const day = dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day }
}

/** Days since 1970 as ISO text. A year outside 0000 to 9999 has a sign, and at least `signedDigits` digits. */
export function formatDate(days: number, signedDigits = 4): string {
  const { year, month, day } = civilDate(days)
  const isPlain = year >= 0 && year <= 9999
  const digits = String(Math.abs(year)).padStart(isPlain ? 4 : signedDigits, '0')
  const sign = isPlain ? '' : year < 0 ? '-' : '+'
  return `${sign}${digits}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
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
