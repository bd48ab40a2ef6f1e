import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Folder } from './folder.ts'
import { isRunning, ownTag } from './process-tag.ts'

// A user of the server is an empty file, `users/<process tag>.<random>`: the name says it all, so a file is never half
// written. A process that was killed leaves its file behind, and the tag tells that nobody is there any more.

/** Enters this process as a user; a process may be several. */
export function addUser(folder: Folder): string {
  const user = `${ownTag()}.${randomBytes(6).toString('hex')}`
  writeFileSync(join(folder.users, user), '', { flag: 'wx' })
  return user
}

export function removeUser(folder: Folder, user: string): void {
  rmSync(join(folder.users, user), { force: true })
}

/** Whether anyone uses the server. Clears away those who were killed. */
export function hasUsers(folder: Folder): boolean {
  const users = readdirSync(folder.users)
  const gone = users.filter((user) => !isRunning(user.split('.')[0] ?? ''))
  for (const user of gone) removeUser(folder, user)
  return users.length > gone.length
}
