import { IcebergError } from '../errors.ts'
import { parseLocation } from './location.ts'

export function parseS3(location: string): { bucket: string; key: string } {
  const parsed = parseLocation(location)
  if (parsed.scheme === 's3') return parsed
  throw new IcebergError('location_invalid', `"${location}" is not an S3 object.`, { details: { location } })
}

export function objectOf(location: string): { Bucket: string; Key: string } {
  const { bucket, key } = parseS3(location)
  if (key !== '') return { Bucket: bucket, Key: key }
  throw new IcebergError('location_invalid', `"${location}" names a bucket and no object.`, { details: { location } })
}

/** With exactly the slashes it has, and at least one: `a/` and `a//` are two folders here. */
export function asFolder(prefix: string): string {
  return prefix.endsWith('/') ? prefix : `${prefix}/`
}

/** What the keys below a folder begin with. */
export function prefixOf(folder: string): { Bucket: string; Prefix: string } {
  const { bucket, key } = parseS3(folder)
  return { Bucket: bucket, Prefix: key === '' ? '' : asFolder(key) }
}
