import { statSync, type Dirent, type Stats } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { setImmediate as otherWork } from 'node:timers/promises'
import { isMissing } from './local-failure.ts'
import type { ListedFile } from './storage.ts'
import { within } from './within.ts'

// A call of Node's that does not block costs ten times as much as one that does, and a listing makes one for each file.
// So files are looked at in slices: the first without blocking, which finds out whether the disk answers, and at once,
// the others with calls that block for some microseconds each. A disk that is slow is never asked so.
// Limit: a network file system that hangs in the middle of a slice blocks the process.

const sliceFiles = 128
/** Of the first file of a slice. */
const slowMs = 20
const parallelFolders = 8

interface Folder {
  readonly location: string
  readonly path: string
}

/** The files below a folder of this machine, in pages; none when it is not there. `explained` makes an error of what Node throws. */
export async function* listFolder(
  root: Folder,
  explained: (location: string, error: unknown) => Error,
  signal: AbortSignal | undefined,
): AsyncGenerator<ListedFile[], void> {
  const reading: { folder: Folder; entries: Promise<Dirent[]> }[] = []
  const waiting: Folder[] = [root]
  const refill = (): void => {
    while (reading.length < parallelFolders) {
      const folder = waiting.pop()
      if (folder === undefined) return
      const entries = entriesOf(folder, explained)
      // Whoever takes it sees the failure; until then it is not "unhandled".
      entries.catch(() => {})
      reading.push({ folder, entries })
    }
  }
  try {
    for (refill(); reading.length > 0; refill()) {
      const { folder, entries } = reading.shift() as (typeof reading)[number]
      const files: string[] = []
      for (const entry of await within(signal, () => entries)) {
        if (entry.isDirectory()) waiting.push(inside(folder, entry.name))
        else files.push(entry.name)
      }
      refill()
      for (let at = 0; at < files.length; at += sliceFiles) {
        const slice = files.slice(at, at + sliceFiles)
        yield await within(signal, () => filesOf(folder, slice, explained))
        signal?.throwIfAborted()
      }
    }
  } finally {
    if (signal?.aborted !== true) await Promise.allSettled(reading.map(({ entries }) => entries))
  }
}

/** A folder that is removed while others are listed has no files any more. */
async function entriesOf({ location, path }: Folder, explained: (l: string, e: unknown) => Error): Promise<Dirent[]> {
  try {
    return await readdir(path, { withFileTypes: true })
  } catch (error) {
    if (isMissing(error)) return []
    throw explained(location, error)
  }
}

async function filesOf(
  folder: Folder,
  slice: readonly string[],
  explained: (l: string, e: unknown) => Error,
): Promise<ListedFile[]> {
  const listed: ListedFile[] = []
  let slow = true
  for (const name of slice) {
    const { location, path } = inside(folder, name)
    try {
      const since = performance.now()
      const found = slow ? await stat(path) : statSync(path)
      slow = performance.now() - since > slowMs
      const file = fileOf(location, found)
      if (file !== undefined) listed.push(file)
    } catch (error) {
      if (!isMissing(error)) throw explained(location, error)
    }
  }
  await otherWork()
  return listed
}

function inside({ location, path }: Folder, name: string): Folder {
  return { location: `${location}/${name}`, path: `${path}/${name}` }
}

// A symbolic link to a file is a file; one to a folder is not followed, for it could lead anywhere.
function fileOf(location: string, found: Stats): ListedFile | undefined {
  return found.isFile() ? { location, size: found.size, modifiedAt: found.mtime } : undefined
}
