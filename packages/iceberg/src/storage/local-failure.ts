import { IcebergError } from '../errors.ts'
import type { ByteRange } from './storage.ts'

/** Runs the work on a file, and tells what fails in the words of this package. */
export async function attempt<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explained(location, error)
  }
}

/** What Node says of a file or folder that is not there. */
export function isMissing(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')
}

/** What Node says of a file or folder that this process may not change. */
export function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')
}

export function explained(location: string, error: unknown): Error {
  if (error instanceof IcebergError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const options = { details: { location }, cause: error }
  if (isMissing(error)) return notFound(location, error)
  if (isDenied(error)) {
    return new IcebergError(
      'storage_denied',
      `${location} cannot be used (${code}): let this process's user read and write the folder.`,
      options,
    )
  }
  if (code === 'EEXIST') {
    return new IcebergError('storage_exists', `${location} exists already, and was not overwritten.`, options)
  }
  // Not from the file system: what the content threw while it was being written, or the reason of a signal.
  if (typeof code !== 'string') return error as Error
  return new IcebergError('storage_failed', `${location} could not be used: ${message}.`, options)
}

export function notFound(location: string, cause?: unknown): IcebergError {
  return new IcebergError('storage_not_found', `There is no file ${location}.`, { details: { location }, cause })
}

export function outOfRange(location: string, { offset, length }: ByteRange, size: number): IcebergError {
  return new IcebergError(
    'storage_range',
    `${location} has ${size} bytes; ${length} from ${offset} were asked for. The file is not the one that was described.`,
    { details: { location, offset, length, size } },
  )
}
