import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Folder } from './folder.ts'
import { isRunning } from './process-tag.ts'

/**
 * Removes what was begun and not finished: databases and copies of binaries, named `new-…` until they are complete, and
 * claims to the lock. Only under the folder's lock, where nobody makes any. An initdb whose process was killed may
 * still be running: it fails when its files go, and what it has written meanwhile goes the next time.
 */
export function clearLeftovers(folder: Folder): void {
  for (const name of readdirSync(folder.path)) {
    const abandonedClaim = name.startsWith('claim-') && !isRunning(name.slice('claim-'.length).split('.')[0] ?? '')
    if (!abandonedClaim && !name.startsWith('new-')) continue
    try {
      rmSync(join(folder.path, name), { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // Nobody will take it for anything.
    }
  }
}
