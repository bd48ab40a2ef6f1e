import { mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chooseAccount } from './account.ts'
import { describeFolder, openFolder, type Folder } from './folder.ts'
import { stopAbandoned } from './member.ts'

const prefix = 'fencepost-postgres-'

/** A new folder among the temporary files. Whoever comes for one clears those away whose users were killed. */
export async function makeTemporary(): Promise<Folder> {
  const parent = realpathSync(tmpdir())
  for (const folder of ownFolders(parent)) {
    try {
      if (await stopAbandoned(folder)) rmSync(folder.path, { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // Somebody else may be clearing it away; and if nobody can, that must not keep us from beginning.
    }
  }
  return openFolder(mkdtempSync(join(parent, prefix)))
}

// Only folders that have users, dead or alive: one without is just being made, or just being removed.
function ownFolders(parent: string): Folder[] {
  const account = chooseAccount(join(parent, prefix))
  const owner = account?.uid ?? process.getuid?.()
  return readdirSync(parent)
    .filter((name) => name.startsWith(prefix))
    .map((name) => describeFolder(join(parent, name), account))
    .filter(({ path, users }) => {
      try {
        return statSync(path).uid === (owner ?? statSync(path).uid) && readdirSync(users).length > 0
      } catch {
        return false
      }
    })
}
