import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { link, mkdir, open, readdir, rename, rmdir, stat, unlink, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { IcebergError } from '../errors.ts'
import { forEachLimited } from './each.ts'
import { isMissing, listFolder } from './local-listing.ts'
import { below, parseLocation, withoutSlashAtEnd } from './location.ts'
import { isThere, type ByteRange, type FailedDelete, type FolderStorage, type ListedFile } from './storage.ts'

// A file is written under a temporary name, flushed, and then given its name: by rename, which replaces, or by link,
// which fails when the name is taken. So no reader sees a part of a file, and of many exclusive writers one wins.
//
// Limit: a process that is killed while it writes leaves `.<name>.<uuid>.tmp` behind. Nothing refers to it, catalogs know
// their files by whole names, and it goes with the table. Other engines' removal of orphans skips names with a dot.

/** Files of this machine: `file:` locations and plain paths. */
export class LocalStorage implements FolderStorage {
  async read(location: string, range?: ByteRange): Promise<Uint8Array> {
    const file = await attempt(location, () => open(pathOf(location), 'r'))
    try {
      return await attempt(location, () => readOpen(file, location, range))
    } finally {
      await file.close()
    }
  }

  async size(location: string): Promise<number> {
    const found = await attempt(location, () => stat(pathOf(location)))
    if (!found.isFile()) throw notFound(location)
    return found.size
  }

  exists(location: string): Promise<boolean> {
    return isThere(this.size(location))
  }

  async write(
    location: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    { exclusive = false }: { exclusive?: boolean } = {},
  ): Promise<void> {
    const path = resolve(pathOf(location))
    const folder = dirname(path)
    await attempt(location, async () => {
      const firstMade = await makeFolders(folder)
      const temporary = join(folder, `.${basename(path)}.${randomUUID()}.tmp`)
      try {
        await writeFlushed(temporary, content)
        if (exclusive) await link(temporary, path)
        else await rename(temporary, path)
      } finally {
        await unlink(temporary).catch(() => {}) // renamed, or never made
      }
      await flushFolders(folder, firstMade)
    })
  }

  list(folder: string): AsyncGenerator<ListedFile> {
    return listFolder(
      { location: withoutSlashAtEnd(folder), path: withoutSlashAtEnd(pathOf(folder)) || '/' },
      explained,
    )
  }

  async delete(locations: readonly string[]): Promise<FailedDelete[]> {
    const failed: FailedDelete[] = []
    await forEachLimited(locations, 16, async (location) => {
      try {
        await attempt(location, () => unlink(pathOf(location)))
      } catch (error) {
        const missing = error instanceof IcebergError && error.code === 'storage_not_found'
        if (!missing) failed.push({ location, error: error as Error })
      }
    })
    return failed
  }

  async folders(folder: string): Promise<string[]> {
    const entries = await readdir(pathOf(folder), { withFileTypes: true }).catch((error: unknown) => {
      if (isMissing(error)) return []
      throw explained(folder, error)
    })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  }

  async makeFolder(folder: string): Promise<void> {
    await attempt(folder, () => makeFolders(pathOf(folder)))
  }

  async removeFolder(folder: string): Promise<void> {
    for (const name of await this.folders(folder)) await this.removeFolder(below(folder, name))
    await attempt(folder, () => rmdir(pathOf(folder)))
  }

  async folderExists(folder: string): Promise<boolean> {
    const found = await stat(pathOf(folder)).catch((error: unknown) => {
      if (isMissing(error)) return undefined
      throw explained(folder, error)
    })
    return found?.isDirectory() === true
  }
}

/** The path of a local file. */
export function pathOf(location: string): string {
  const parsed = parseLocation(location)
  if (parsed.scheme === 'file') return parsed.path
  throw new IcebergError('location_invalid', `"${location}" is not a file of this machine.`, { details: { location } })
}

async function readOpen(file: FileHandle, location: string, range: ByteRange | undefined): Promise<Uint8Array> {
  const found = await file.stat()
  if (!found.isFile()) throw notFound(location)
  const { offset, length } = range ?? { offset: 0, length: found.size }
  if (offset < 0 || length < 0 || offset + length > found.size)
    throw outOfRange(location, { offset, length }, found.size)
  const bytes = new Uint8Array(length)
  for (let done = 0; done < length;) {
    const { bytesRead } = await file.read(bytes, done, length - done, offset + done)
    if (bytesRead === 0) throw outOfRange(location, { offset, length }, offset + done)
    done += bytesRead
  }
  return bytes
}

/** Returns the first that was made. */
async function makeFolders(folder: string): Promise<string | undefined> {
  try {
    return await mkdir(folder, { recursive: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new IcebergError('storage_failed', `${folder} is a file, and a folder is needed there.`, { cause: error })
  }
}

async function writeFlushed(path: string, content: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
  const file = await open(path, 'wx')
  try {
    if (content instanceof Uint8Array) await file.writeFile(content)
    else for await (const chunk of content) await file.writeFile(chunk)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Makes the name durable: the folder, and every folder that was made for it. */
async function flushFolders(folder: string, firstMade: string | undefined): Promise<void> {
  const last = firstMade === undefined ? folder : dirname(firstMade)
  for (let at = folder; ; at = dirname(at)) {
    const handle = await open(at, constants.O_RDONLY)
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
    if (at === last || at === dirname(at)) return
  }
}

async function attempt<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw explained(location, error)
  }
}

function explained(location: string, error: unknown): Error {
  if (error instanceof IcebergError) return error
  const { code, message } = error as NodeJS.ErrnoException
  const options = { details: { location }, cause: error }
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return notFound(location, error)
    case 'EEXIST':
      return new IcebergError('storage_exists', `${location} exists already, and was not overwritten.`, options)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new IcebergError(
        'storage_denied',
        `${location} cannot be used (${code}): let this process's user read and write the folder.`,
        options,
      )
    case undefined:
      // Not from the file system: what the content threw while it was being written.
      return error as Error
    default:
      return new IcebergError('storage_failed', `${location} could not be used: ${message}.`, options)
  }
}

function notFound(location: string, cause?: unknown): IcebergError {
  return new IcebergError('storage_not_found', `There is no file ${location}.`, { details: { location }, cause })
}

function outOfRange(location: string, { offset, length }: ByteRange, size: number): IcebergError {
  return new IcebergError(
    'storage_range',
    `${location} has ${size} bytes; ${length} from ${offset} were asked for. The file is not the one that was described.`,
    { details: { location, offset, length, size } },
  )
}
