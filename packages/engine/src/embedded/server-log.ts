import { constants, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { give, type Folder } from './folder.ts'

const maxBytes = 10 * 1024 * 1024
// 0 where there is no such flag, on Windows.
const noLink = (constants as { O_NOFOLLOW?: number }).O_NOFOLLOW ?? 0

/** Opens the log for a new server, which appends to it from `begin` on. One older log is kept. */
export function openLog(folder: Folder): { descriptor: number; begin: number } {
  const size = statSync(folder.log, { throwIfNoEntry: false })?.size ?? 0
  const full = size > maxBytes
  if (full) renameSync(folder.log, `${folder.log}.old`)
  const descriptor = openSync(folder.log, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | noLink, 0o600)
  give(folder.log, folder)
  return { descriptor, begin: full ? 0 : size }
}

/** What was logged since. */
export function readLog(folder: Folder, begin = 0): string {
  if (!statSync(folder.log, { throwIfNoEntry: false })) return ''
  return readFileSync(folder.log).subarray(begin).toString()
}
