import { posix } from 'node:path'
import { IcebergError } from '../errors.ts'

// Locations are taken as they are: nothing is percent-decoded, and the key of an S3 object is its bytes. Writers put
// such things as `day=2026-01-01%2000` into file names, and `a%20b`, `a b` and `a//b` are three different objects.

export type Location =
  | { readonly scheme: 'file'; readonly path: string }
  | { readonly scheme: 's3'; readonly bucket: string; readonly key: string }

const schemePattern = /^([a-z][a-z0-9+.-]+):/i

/** What a location means. A plain path, absolute or relative, is a local file; s3a and s3n are s3. */
export function parseLocation(location: string): Location {
  if (location === '' || location.includes('\0')) throw invalid(location, 'it is empty or holds a null character')
  const scheme = schemePattern.exec(location)?.[1]
  switch (scheme?.toLowerCase()) {
    case undefined:
      return { scheme: 'file', path: location }
    case 'file':
      return { scheme: 'file', path: filePath(location) }
    case 's3':
    case 's3a':
    case 's3n':
      return s3Object(location)
    default:
      throw invalid(location, `files with the scheme "${scheme}" cannot be reached: use file, s3, s3a or s3n`)
  }
}

// file:/a, file:///a, file://localhost/a and file:////a are all /a.
function filePath(location: string): string {
  const rest = location.slice('file:'.length)
  const path = rest.startsWith('//') ? rest.slice(2).replace(/^localhost(?=\/)/i, '') : rest
  if (!path.startsWith('/')) throw invalid(location, 'a file: location is absolute and on this machine: file:///folder')
  return path.replace(/^\/+/, '/')
}

function s3Object(location: string): Location {
  const rest = location.slice(location.indexOf(':') + 1)
  const slash = rest.indexOf('/', 2)
  const bucket = rest.startsWith('//') ? rest.slice(2, slash === -1 ? undefined : slash) : ''
  if (bucket === '') throw invalid(location, 'it names no bucket: s3://bucket/key')
  return { scheme: 's3', bucket, key: slash === -1 ? '' : rest.slice(slash + 1) }
}

/**
 * One text for every spelling of the same file, to compare locations by. An S3 key is compared as it is, byte for byte;
 * the path of a local file without what the file system itself ignores: doubled slashes and dots.
 * Limit: two names of one file through symbolic links, or through a file system that ignores case, stay two.
 */
export function locationKey(location: string): string {
  const parsed = parseLocation(location)
  if (parsed.scheme === 's3') return `s3://${parsed.bucket}/${parsed.key}`
  return `file:${posix.normalize(parsed.path)}`
}

/** A location below a folder, whether or not the folder is spelled with a slash at its end. */
export function below(folder: string, ...names: readonly string[]): string {
  return [withoutSlashAtEnd(folder), ...names].join('/')
}

export function withoutSlashAtEnd(folder: string): string {
  return folder.replace(/\/+$/, '')
}

/** A location without its scheme and authority. */
export function pathAlone(location: string): string {
  return location.replace(/^[a-z][a-z0-9+.-]*:(\/\/[^/]*)?/i, '').replace(/^\/+/, '/')
}

/** The last part of a location. */
export function fileName(location: string): string {
  return location.slice(location.lastIndexOf('/') + 1)
}

function invalid(location: string, why: string): IcebergError {
  return new IcebergError('location_invalid', `The location "${location}" cannot be used: ${why}.`, {
    details: { location },
  })
}
