import { FencepostError } from './errors.ts'

const hex = /^[0-9a-f]{32}$/
const dashed = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Checks an id that came from outside and returns it as 32 lower-case hexadecimal digits. Dashes are accepted. */
export function checkId(value: string, what = 'job id'): string {
  const id = typeof value === 'string' ? value.toLowerCase() : ''
  if (hex.test(id)) return id
  if (dashed.test(id)) return id.replaceAll('-', '')
  throw new FencepostError('id_invalid', `${JSON.stringify(value)} is not a ${what}: give 32 hexadecimal digits.`, {
    details: { what },
  })
}

/** The form in which Postgres writes an id as text. */
export function dashedId(id: string): string {
  return id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
