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

const arrayHeaderBytes = 20
const uuidBytes = 16

/** Ids as a parameter that Postgres reads at once: a uuid[] in its binary form. */
export function uuidArray(ids: readonly string[]): Buffer {
  const bytes = Buffer.alloc(arrayHeaderBytes + ids.length * (4 + uuidBytes))
  // One dimension, no nulls, elements of uuidOid, that many of them, counted from 1. An empty one has no dimension.
  const header = ids.length === 0 ? [0, 0, uuidOid] : [1, 0, uuidOid, ids.length, 1]
  for (const [nth, value] of header.entries()) bytes.writeInt32BE(value, nth * 4)
  ids.forEach((id, nth) => {
    const at = arrayHeaderBytes + nth * (4 + uuidBytes)
    bytes.writeInt32BE(uuidBytes, at)
    bytes.write(id, at + 4, 'hex')
  })
  return ids.length === 0 ? bytes.subarray(0, 12) : bytes
}

/** Texts as Postgres writes an array of them; undefined for none. One such text is a column's value, and a list of them a column. */
export function arrayText(texts: readonly string[]): string | undefined {
  if (texts.length === 0) return undefined
  return `{${texts.map((text) => `"${text.replaceAll(/[\\"]/g, '\\$&')}"`).join(',')}}`
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
