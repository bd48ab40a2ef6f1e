import { statSync } from 'node:fs'
import { FencepostError } from '../errors.ts'

const notWritable = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST', 'ENAMETOOLONG'])
const diskFull = new Set(['ENOSPC', 'EDQUOT', '53100'])

/** Any error met while opening, with a code: those of the file system by their errno, the rest as a failed start. */
export function openFailure(error: unknown, directory: string): FencepostError {
  if (error instanceof FencepostError) return error
  const { code, message, syscall } = error as NodeJS.ErrnoException
  if (code !== undefined && diskFull.has(code)) return fullDisk(directory, message, error)
  // Node's recursive mkdir says ENOENT on a read-only file system.
  const noPlace = code === 'ENOENT' && syscall === 'mkdir'
  if (noPlace || (code !== undefined && notWritable.has(code))) return notWritableFolder(directory, message, error)
  return new FencepostError(
    'embedded_start_failed',
    `The embedded Postgres in ${directory} did not start: ${message}`,
    {
      details: { directory },
      cause: error,
    },
  )
}

/**
 * What initdb or postgres said before it ended, as a coded error. Their text is all they give, and it is in English
 * because they run with LC_ALL=C.
 */
export function programFailure(program: string, directory: string, output: string, where: string): FencepostError {
  const said = lastLines(output)
  if (/No space left on device|Disk quota exceeded/.test(said)) return fullDisk(directory, said)
  if (/could not (?!bind).*(Permission denied|Read-only file system)/.test(said))
    return notWritableFolder(directory, said)
  // A container that runs under a number: initdb wants it to have a name, though it does nothing with it.
  const hint = said.includes('could not look up effective user ID') ? ' Give this uid a line in /etc/passwd.' : ''
  return new FencepostError(
    'embedded_start_failed',
    `${program} ${where}\n${said}\nTo use a server of your own instead, set DATABASE_URL.${hint}`,
    { details: { directory, output: said } },
  )
}

function fullDisk(directory: string, reason: string, cause?: unknown): FencepostError {
  return new FencepostError(
    'embedded_disk_full',
    `There is no space left for the embedded Postgres in ${directory}. It needs about 100 MB to begin with: ` +
      `free some, give another directory, or set DATABASE_URL to use a server of your own.\n${reason}`,
    { details: { directory }, cause },
  )
}

function notWritableFolder(directory: string, reason: string, cause?: unknown): FencepostError {
  return new FencepostError(
    'embedded_not_writable',
    `The folder of the embedded Postgres, ${directory}${ownership(directory)}, cannot be written. ` +
      `Make it writable, give another directory, or set DATABASE_URL to use a server of your own.\n${reason}`,
    { details: { directory }, cause },
  )
}

function ownership(directory: string): string {
  try {
    const owner = statSync(directory).uid
    const user = process.getuid?.()
    return user === undefined || user === owner ? '' : ` (owned by uid ${owner}, this is uid ${user})`
  } catch {
    return ''
  }
}

function lastLines(output: string): string {
  return output.trim().split('\n').slice(-15).join('\n').slice(-4000)
}
