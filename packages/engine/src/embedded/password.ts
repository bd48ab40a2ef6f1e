import { randomBytes } from 'node:crypto'
import { readFileSync, renameSync } from 'node:fs'
import { FencepostError } from '../errors.ts'
import { giveFile, type Folder } from './folder.ts'

/** Draws the password of a new server. Only who can read the folder can connect, not everyone on this machine. */
export function createPassword(folder: Folder): void {
  const unfinished = `${folder.password}.new`
  giveFile(unfinished, `${randomBytes(24).toString('base64url')}\n`, folder)
  renameSync(unfinished, folder.password)
}

export function readPassword(folder: Folder): string {
  try {
    return readFileSync(folder.password, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new FencepostError(
      'embedded_start_failed',
      `${folder.password} is missing, and without it nobody can connect. Put it back, or give another directory.`,
      { details: { directory: folder.path }, cause: error },
    )
  }
}
