import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { copyFile, link, open, readdir, rename, rm, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { IcebergError } from '../errors.ts'
import { forEachLimited } from './each.ts'
import { attempt, explained, isDenied, isMissing, notFound, outOfRange } from './local-failure.ts'
import { makeFolders, syncFile, syncFolders } from './local-folders.ts'
import { listFolder } from './local-listing.ts'
import { below, parseLocation, withoutSlashAtEnd } from './location.ts'
import { eachOfPages } from './pages.ts'
import {
  isThere,
  type ByteRange,
  type CallOptions,
  type Deleted,
  type Draft,
  type FailedDelete,
  type FolderStorage,
  type ListedFile,
  type WriteOptions,
} from './storage.ts'
import { eachWithin, within } from './within.ts'

// A file is written under a temporary name beside its own, synced, and then given its name: by rename, which replaces, or
// by link, which fails when the name is taken. Then its folder is synced. So no reader sees a part of a file, also after
// a crash of the machine, and of many exclusive writers one wins. A draft is such a temporary file.
//
// Limit: a process that is killed while it writes leaves `.<name>.<uuid>.tmp` behind. Nothing refers to it, catalogs know
// their files by whole names, and it goes with the table. Other engines' removal of orphans skips names with a dot.

const parallelFiles = 8
const parallelDeletes = 16
/** Bytes of one read, after which the signal is looked at. */
const readBytes = 16 * 1024 * 1024

/** Files of this machine: `file:` locations and plain paths. */
export class LocalStorage implements FolderStorage {
  read(location: string, range?: ByteRange, { signal }: CallOptions = {}): Promise<Uint8Array> {
    return attemptWithin(signal, location, async () => {
      const file = await open(pathOf(location), 'r')
      try {
        return await readOpen(file, location, range, signal)
      } finally {
        await file.close()
      }
    })
  }

  size(location: string, { signal }: CallOptions = {}): Promise<number> {
    return attemptWithin(signal, location, async () => {
      const found = await stat(pathOf(location))
      if (!found.isFile()) throw notFound(location)
      return found.size
    })
  }

  exists(location: string, options?: CallOptions): Promise<boolean> {
    return isThere(this.size(location, options))
  }

  write(
    location: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    { exclusive = false, signal }: WriteOptions = {},
  ): Promise<void> {
    return attemptWithin(signal, location, async () => {
      const path = absolutePathOf(location)
      await makeFolders(dirname(path))
      await viaTemporary(path, signal, exclusive, (temporary) => writeSynced(temporary, content, signal))
      await syncFolders([dirname(path)])
    })
  }

  draft(location: string, { signal }: CallOptions = {}): Promise<Draft> {
    return attemptWithin(signal, location, async () => {
      const path = absolutePathOf(location)
      await makeFolders(dirname(path))
      const temporary = temporaryBeside(path)
      return { location, path: temporary, discard: () => rm(temporary, { force: true }).catch(() => {}) }
    })
  }

  async adopt(drafts: readonly Draft[], { signal }: CallOptions = {}): Promise<void> {
    const targets = drafts.map(({ location, path }) => ({
      location,
      from: resolve(path),
      to: absolutePathOf(location),
    }))
    const folders = new Set(targets.map(({ to }) => dirname(to)))
    await within(signal, async () => {
      await forEachLimited(targets, parallelFiles, async ({ location, from, to }) => {
        signal?.throwIfAborted()
        await attempt(location, () => takeIn(from, to, signal))
      })
      await attempt(drafts[0]?.location ?? '', () => syncFolders(folders))
    })
  }

  copy(from: string, to: string, options: CallOptions = {}): Promise<void> {
    const { signal } = options
    return attemptWithin(signal, to, async () => {
      await this.size(from, options)
      const [source, path] = [absolutePathOf(from), absolutePathOf(to)]
      await makeFolders(dirname(path))
      await viaTemporary(path, signal, false, (temporary) => attempt(from, () => copySynced(source, temporary)))
      await syncFolders([dirname(path)])
    })
  }

  list(folder: string, { signal }: CallOptions = {}): AsyncIterable<ListedFile> {
    const root = { location: withoutSlashAtEnd(folder), path: withoutSlashAtEnd(pathOf(folder)) || '/' }
    return eachOfPages(listFolder(root, explained, signal))
  }

  async delete(locations: readonly string[], { signal }: CallOptions = {}): Promise<Deleted> {
    const failed: FailedDelete[] = []
    const missing: string[] = []
    await within(signal, () =>
      forEachLimited(locations, parallelDeletes, async (location) => {
        signal?.throwIfAborted()
        try {
          await attempt(location, () => unlink(pathOf(location)))
        } catch (error) {
          const isGone = error instanceof IcebergError && error.code === 'storage_not_found'
          if (isGone) missing.push(location)
          else failed.push({ location, error: error as Error })
        }
      }),
    )
    return { failed, missing }
  }

  /** By a file that is made there: the clock of a network file system is its server's. */
  now(folder: string, { signal }: CallOptions = {}): Promise<Date> {
    return attemptWithin(signal, folder, async () => {
      const probe = join(pathOf(folder), `.fencepost-clock-${randomUUID()}`)
      try {
        const file = await open(probe, 'wx')
        try {
          return (await file.stat()).mtime
        } finally {
          await file.close()
        }
      } catch (error) {
        // Where this process can make no file it can delete none either, so nothing hangs on the age of what is there.
        if (isMissing(error) || isDenied(error)) return new Date()
        throw error
      } finally {
        await unlink(probe).catch(() => {})
      }
    })
  }

  folders(folder: string, { signal }: CallOptions = {}): Promise<string[]> {
    return attemptWithin(signal, folder, async () => {
      const entries = await readdir(pathOf(folder), { withFileTypes: true }).catch((error: unknown) => {
        if (isMissing(error)) return []
        throw error
      })
      return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
    })
  }

  makeFolder(folder: string, { signal }: CallOptions = {}): Promise<void> {
    return attemptWithin(signal, folder, () => makeFolders(absolutePathOf(folder)))
  }

  async removeFolder(folder: string, options: CallOptions = {}): Promise<void> {
    for (const name of await this.folders(folder, options)) await this.removeFolder(below(folder, name), options)
    await attemptWithin(options.signal, folder, () => rmdir(pathOf(folder)))
  }

  folderExists(folder: string, { signal }: CallOptions = {}): Promise<boolean> {
    return attemptWithin(signal, folder, async () => {
      const found = await stat(pathOf(folder)).catch((error: unknown) => {
        if (isMissing(error)) return undefined
        throw error
      })
      return found?.isDirectory() === true
    })
  }
}

/** The path of a local file. */
export function pathOf(location: string): string {
  const parsed = parseLocation(location)
  if (parsed.scheme === 'file') return parsed.path
  throw new IcebergError('location_invalid', `"${location}" is not a file of this machine.`, { details: { location } })
}

function absolutePathOf(location: string): string {
  return resolve(pathOf(location))
}

function temporaryBeside(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomUUID()}.tmp`)
}

function attemptWithin<T>(signal: AbortSignal | undefined, location: string, work: () => Promise<T>): Promise<T> {
  return within(signal, () => attempt(location, work))
}

async function readOpen(
  file: FileHandle,
  location: string,
  range: ByteRange | undefined,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const found = await file.stat()
  if (!found.isFile()) throw notFound(location)
  const { offset, length } = range ?? { offset: 0, length: found.size }
  if (offset < 0 || length < 0 || offset + length > found.size)
    throw outOfRange(location, { offset, length }, found.size)
  const bytes = new Uint8Array(length)
  for (let done = 0; done < length;) {
    signal?.throwIfAborted()
    const { bytesRead } = await file.read(bytes, done, Math.min(readBytes, length - done), offset + done)
    if (bytesRead === 0) throw outOfRange(location, { offset, length }, offset + done)
    done += bytesRead
  }
  return bytes
}

/** Lets `write` make a temporary file, and gives it its name. */
async function viaTemporary(
  path: string,
  signal: AbortSignal | undefined,
  exclusive: boolean,
  write: (temporary: string) => Promise<void>,
): Promise<void> {
  const temporary = temporaryBeside(path)
  try {
    await write(temporary)
    signal?.throwIfAborted()
    if (exclusive) await link(temporary, path)
    else await rename(temporary, path)
  } finally {
    await unlink(temporary).catch(() => {}) // renamed, or never made
  }
}

async function writeSynced(
  path: string,
  content: Uint8Array | AsyncIterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const file = await open(path, 'wx')
  try {
    if (content instanceof Uint8Array) await file.writeFile(content)
    else for await (const chunk of eachWithin(signal, content)) await file.writeFile(chunk)
    signal?.throwIfAborted()
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Shares the blocks with the source where the file system can. */
async function copySynced(from: string, to: string): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
  await syncFile(to)
}

/** Gives a finished file its name. From another file system it is copied first: a move would show a part of it. */
async function takeIn(from: string, to: string, signal: AbortSignal | undefined): Promise<void> {
  await syncFile(from)
  signal?.throwIfAborted()
  await makeFolders(dirname(to))
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await viaTemporary(to, signal, false, (temporary) => copySynced(from, temporary))
    await unlink(from)
  }
}
