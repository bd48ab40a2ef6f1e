import { chownSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import type { Folder } from './folder.ts'

const maxBytes = 10 * 1024 * 1024

/** Opens the log for a new server, which appends to it from `begin` on. One older log is kept. */
export function openLog(folder: Folder): { descriptor: number; begin: number } {
  const size = statSync(folder.log, { throwIfNoEntry: false })?.size ?? 0
  const full = size > maxBytes
  if (full) renameSync(folder.log, `${folder.log}.old`)
  const descriptor = openSync(folder.log, 'a', 0o600)
  if (folder.account) chownSync(folder.log, folder.account.uid, folder.account.gid)
  return { descriptor, begin: full ? 0 : size }
}

/** What was logged since. */
export function readLog(folder: Folder, begin = 0): string {
  return readFileSync(folder.log).subarray(begin).toString()
}
