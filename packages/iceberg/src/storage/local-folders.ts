import { constants } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { IcebergError } from '../errors.ts'
import { forEachLimited } from './each.ts'

// A file is durable when its content is synced, and then the folder that holds its name. A folder that was made for it is
// a name too, in the folder above.

const parallelSyncs = 8

/** Folders this process has made, whose own names are not yet known to be durable. */
const unsynced = new Set<string>()

/** Makes a folder and those above it. The path is absolute. */
export async function makeFolders(folder: string): Promise<void> {
  let first: string | undefined
  try {
    first = await mkdir(folder, { recursive: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new IcebergError('storage_failed', `${folder} is a file, and a folder is needed there.`, { cause: error })
  }
  if (first === undefined) return
  for (let at = folder; at.length >= first.length; at = dirname(at)) unsynced.add(at)
}

/** Makes the names in these folders durable, and those of the folders that were made for them. */
export async function syncFolders(folders: Iterable<string>): Promise<void> {
  const chain = new Set<string>()
  const named: string[] = []
  for (const folder of folders) {
    let at = folder
    for (; unsynced.has(at); at = dirname(at)) {
      if (chain.has(at)) break
      chain.add(at)
      named.push(at)
    }
    chain.add(at)
  }
  await forEachLimited(chain, parallelSyncs, syncPath)
  // Only now: until then another call that needs them syncs them itself.
  for (const folder of named) unsynced.delete(folder)
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Makes the content of a file durable. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDWR)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
