import { randomBytes } from 'node:crypto'
import { readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FencepostError } from '../errors.ts'
import { giveDirectory, type Folder } from './folder.ts'
import { isRunning, ownTag } from './process-tag.ts'
import type { Waiting } from './waiting.ts'

// The lock is a directory with one file in it, whose name is the owner: `lock/<process tag>.<random>`.
//
//   free     the directory is missing or empty
//   taken    by renaming a prepared directory, owner inside, to `lock`: the system does that only over nothing or over
//            an empty directory, and in one step, so there is one winner, and never a lock whose owner is not known yet
//   released by deleting the owner's file
//   broken   the same way, by anyone who sees that the owner's process has ended. A name is never used twice, so
//            whoever comes late to break it deletes nothing: the file of the next owner has another name.

export interface FolderLock {
  release(): void
}

const held = new Map<string, FolderLock>()

/** Takes the lock. Throws when another process has had it for `waitMs`. */
export function* lockFolder(folder: Folder, waitMs: number): Waiting<FolderLock> {
  const deadline = performance.now() + waitMs
  for (;;) {
    const attempt = tryLock(folder)
    if ('release' in attempt) return attempt
    if (performance.now() > deadline) throw lockedTooLong(folder, attempt.owner, waitMs)
    yield
  }
}

/** Takes the lock while the process ends: what this process itself was doing under it will not go on. */
export function* lockFolderAtExit(folder: Folder, waitMs: number): Waiting<FolderLock> {
  const owner = ownerOf(folder)
  const own = owner === undefined ? undefined : held.get(join(folder.lock, owner))
  return own ?? (yield* lockFolder(folder, waitMs))
}

function tryLock(folder: Folder): FolderLock | { owner: string } {
  const current = ownerOf(folder)
  if (current !== undefined) {
    if (isRunning(current.split('.')[0] ?? '')) return { owner: current }
    rmSync(join(folder.lock, current), { force: true })
  }
  const owner = `${ownTag()}.${randomBytes(6).toString('hex')}`
  const claim = join(folder.path, `claim-${owner}`)
  giveDirectory(claim, folder)
  try {
    writeFileSync(join(claim, owner), '')
    removeEmpty(folder.lock)
    renameSync(claim, folder.lock)
  } catch (error) {
    rmSync(claim, { recursive: true, force: true })
    if (!isOccupied(error)) throw error
    return { owner: ownerOf(folder) ?? owner }
  }
  const path = join(folder.lock, owner)
  const lock = {
    release() {
      held.delete(path)
      rmSync(path, { force: true })
    },
  }
  held.set(path, lock)
  return lock
}

function isOccupied(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOTEMPTY' || code === 'EEXIST') return true
  return process.platform === 'win32' && (code === 'EPERM' || code === 'EACCES')
}

function ownerOf(folder: Folder): string | undefined {
  try {
    return readdirSync(folder.lock)[0]
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

// For Windows, which does not rename over an empty directory. Elsewhere it is not needed, and does no harm.
function removeEmpty(path: string): void {
  try {
    rmdirSync(path)
  } catch {
    // missing, or taken meanwhile
  }
}

function lockedTooLong(folder: Folder, owner: string, waitMs: number): FencepostError {
  const pid = Number.parseInt(owner, 10)
  return new FencepostError(
    'embedded_start_failed',
    `Process ${pid} has been starting or stopping the embedded Postgres in ${folder.path} for ${waitMs} ms. ` +
      'Wait for it or end it, then try again.',
    { details: { directory: folder.path, pid }, retryable: true },
  )
}
