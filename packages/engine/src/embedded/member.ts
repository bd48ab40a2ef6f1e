import { existsSync, rmSync } from 'node:fs'
import type { Folder } from './folder.ts'
import { lockFolder, lockFolderAtExit, type FolderLock } from './folder-lock.ts'
import { clearLeftovers } from './leftovers.ts'
import { beforeProcessEnd } from './process-end.ts'
import { stopServer } from './server.ts'
import { addUser, hasUsers, removeUser } from './users.ts'
import { blocking, patiently, type Waiting } from './waiting.ts'

// The server lives as long as it has users.
//
//   join    enter as a user, take the lock, find or start the server, give the lock back
//   leave   go from the users; if nobody is left, take the lock, and if still nobody is there, stop the server
//
// A user is entered before the lock is asked for, so whoever is about to stop the server sees who is about to join. And
// everyone goes from the users before looking who is left, so of several who leave together the last sees nobody.
//
// Who is killed leaves nothing running for ever: the next user clears the dead away, joins the server, and stops it in
// the end. Limit: until that next user comes, the server of one who was killed goes on.

const lockWaitMs = 60_000
const lockWaitAtExitMs = 15_000

/** One use of the server. */
export interface Member {
  /** Ends this use, and the server with the last one. */
  leave(): Promise<void>
}

/** Enters this process as a user, who leaves when the process ends, if not before. */
export function joinUsers(folder: Folder, options: { temporary: boolean }): Member {
  const user = addUser(folder)
  const forget = beforeProcessEnd(() => {
    blocking(leaving(folder, user, options.temporary, lockFolderAtExit(folder, lockWaitAtExitMs)))
  })
  let left: Promise<void> | undefined
  return {
    leave() {
      left ??= patiently(leaving(folder, user, options.temporary, lockFolder(folder, lockWaitMs))).finally(forget)
      return left
    },
  }
}

/** Stops the server of a folder whose users were all killed. False when it has users. */
export async function stopAbandoned(folder: Folder): Promise<boolean> {
  if (hasUsers(folder)) return false
  const lock = await patiently(lockFolder(folder, lockWaitMs))
  try {
    if (hasUsers(folder)) return false
    await patiently(stopServer(folder))
    return true
  } finally {
    lock.release()
  }
}

function* leaving(folder: Folder, user: string, temporary: boolean, locking: Waiting<FolderLock>): Waiting<void> {
  removeUser(folder, user)
  // Somebody has removed the folder. A server whose files are gone notices, and stops by itself within a minute.
  if (!existsSync(folder.users)) return
  if (hasUsers(folder)) return
  const lock = yield* locking
  try {
    if (hasUsers(folder)) return
    yield* stopServer(folder)
    if (temporary) rmSync(folder.path, { recursive: true, force: true, maxRetries: 3 })
    else clearLeftovers(folder)
  } finally {
    lock.release()
  }
}
