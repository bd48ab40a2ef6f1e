import pg from 'pg'

const uuidOid = 2950
const timestamptzOid = 1184
const int8Oid = 20

/**
 * How values come out of Postgres, set per statement so that it also holds on a caller's own client:
 * ids as 32 hexadecimal digits, times as RFC 3339 in UTC with microseconds, 64-bit integers as bigint.
 */
export const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary'): ((value: string) => unknown) => {
    if (format !== 'binary') {
      if (oid === uuidOid) return (value: string) => value.replaceAll('-', '')
      if (oid === timestamptzOid) return timestamp
      if (oid === int8Oid) return BigInt
    }
    return pg.types.getTypeParser(oid, format) as (value: string) => unknown
  },
}

/** '2026-04-25 16:35:00.12+02' → '2026-04-25T14:35:00.120000Z'. A Date would drop the microseconds. */
export function timestamp(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?([+-]\d\d)(?::?(\d\d))?(?::\d\d)?$/.exec(text)
  if (match === null) return text // infinity, or a year that RFC 3339 cannot write
  const [, date, time, fraction = '', hours, minutes = '00'] = match
  // Postgres mostly speaks UTC already, and a Date takes as long as all the rest of this.
  if (hours === '+00' && minutes === '00') return `${date}T${time}.${fraction.padEnd(6, '0')}Z`
  const seconds = new Date(`${date}T${time}${hours}:${minutes}`).toISOString().slice(0, 19)
  return `${seconds}.${fraction.padEnd(6, '0')}Z`
}
