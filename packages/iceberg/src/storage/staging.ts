import { randomUUID } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { IcebergError } from '../errors.ts'
import { ByteBudget } from './byte-budget.ts'
import { forEachLimited, partsOf } from './each.ts'
import { pathOf } from './local-storage.ts'
import { parseLocation } from './location.ts'
import type { Storage } from './storage.ts'
import { temporaryFolder } from './temporary-folder.ts'

// DuckDB reads local files only. Remote ones are copied to a temporary folder of this process.

export interface StagingOptions {
  /** Where the folder of this process is made. Default: the system's folder for temporary files. */
  folder?: string
  /** Bytes that may be on disk at the same time. Who asks for more waits for others to release. Default 10 GiB. */
  maxBytes?: number
  /** Bytes of one ranged read. Default 16 MiB. All folders of the process together hold 128 MiB of them in memory. */
  partBytes?: number
  /** Ranged reads under way for one file. Default 4. */
  parallelParts?: number
  /** Files of one call that are copied at the same time. Default 4. */
  parallelFiles?: number
}

/** Files on the local disk, until they are released. */
export interface Staged {
  /** In the order they were asked for. */
  readonly paths: readonly string[]
  /** Removes the copies; what was local all along stays. */
  release(): Promise<void>
}

export interface FileToStage {
  readonly location: string
  /** When it is known, to spare asking the storage. */
  readonly size?: number
}

/** What ranged reads hold in memory, all folders of this process together. */
const buffers = new ByteBudget(128 * 1024 ** 2)

interface Waiting {
  bytes: number
  go: () => void
}

/** A bounded folder of local copies. */
export class Staging {
  readonly folder: string
  readonly #options: Required<Omit<StagingOptions, 'folder'>>
  #usedBytes = 0
  readonly #waiting: Waiting[] = []

  private constructor(folder: string, options: StagingOptions) {
    this.folder = folder
    this.#options = {
      maxBytes: options.maxBytes ?? 10 * 1024 ** 3,
      partBytes: options.partBytes ?? 16 * 1024 ** 2,
      parallelParts: options.parallelParts ?? 4,
      parallelFiles: options.parallelFiles ?? 4,
    }
  }

  /** Makes the folder, and removes those of processes that have ended without doing so. */
  static async open(options: StagingOptions = {}): Promise<Staging> {
    return new Staging(await temporaryFolder('staging', options.folder), options)
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  get maxBytes(): number {
    return this.#options.maxBytes
  }

  /** The room that a file of known size needs here: none when it is local. */
  bytesOf(storage: Storage, { location, size }: Required<FileToStage>): number {
    return localPathOf(storage, location) === undefined ? size : 0
  }

  /**
   * Copies remote files here; local ones are used where they are. All of a call are admitted together, so that two
   * callers that each hold a part of the room cannot wait for each other: ask for everything in one call.
   */
  async stage(storage: Storage, files: readonly FileToStage[], signal?: AbortSignal): Promise<Staged> {
    const sized = await Promise.all(files.map((file) => this.#sized(storage, file, signal)))
    const bytes = sized.reduce((sum, { size }) => sum + size, 0)
    const release = await this.#admit(bytes, signal)
    const copies = sized.filter(({ remote }) => remote).map(({ path }) => path)
    const staged: Staged = { paths: sized.map(({ path }) => path), release: once(() => this.#remove(copies, release)) }
    try {
      const remote = sized.filter((file) => file.remote)
      await forEachLimited(remote, this.#options.parallelFiles, async (file) => {
        signal?.throwIfAborted()
        await this.#copy(storage, file, signal)
      })
      signal?.throwIfAborted()
      return staged
    } catch (error) {
      await staged.release()
      throw error
    }
  }

  /** A path for a file that is to be written here, with `bytes` of room kept for it. */
  async reserve(bytes: number, extension = '', signal?: AbortSignal): Promise<Staged> {
    const release = await this.#admit(bytes, signal)
    const path = join(this.folder, `${randomUUID()}${extension}`)
    return { paths: [path], release: once(() => this.#remove([path], release)) }
  }

  /** Removes the folder with everything in it. */
  async close(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }

  async #sized(storage: Storage, { location, size }: FileToStage, signal: AbortSignal | undefined) {
    const local = localPathOf(storage, location)
    const remote = local === undefined
    if (!remote) return { location, remote, path: local, size: 0 }
    const path = join(this.folder, `${randomUUID()}${extensionOf(location)}`)
    return { location, remote, path, size: size ?? (await storage.size(location, { signal })) }
  }

  async #copy(
    storage: Storage,
    { location, path, size }: { location: string; path: string; size: number },
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { partBytes, parallelParts } = this.#options
    const file = await open(path, 'wx')
    try {
      await forEachLimited(partsOf(0, size, partBytes), parallelParts, async (part) => {
        signal?.throwIfAborted()
        await buffers.with(part.length, async () => {
          signal?.throwIfAborted()
          const bytes = await storage.read(location, part, { signal })
          for (let done = 0; done < bytes.length;) {
            done += (await file.write(bytes, done, bytes.length - done, part.offset + done)).bytesWritten
          }
        })
      })
    } finally {
      await file.close()
    }
  }

  /** Waits for room, first come first served, and returns how to give it back. */
  async #admit(bytes: number, signal: AbortSignal | undefined): Promise<() => void> {
    const { maxBytes } = this.#options
    if (bytes > maxBytes) {
      throw new IcebergError(
        'staging_full',
        `Files of ${bytes} bytes are to be staged together and ${maxBytes} are allowed: raise maxBytes, or work on fewer files.`,
        { details: { bytes, maxBytes } },
      )
    }
    signal?.throwIfAborted()
    if (this.#waiting.length > 0 || this.#usedBytes + bytes > maxBytes) await this.#wait(bytes, signal)
    else this.#usedBytes += bytes
    return () => {
      this.#usedBytes -= bytes
      this.#letIn()
    }
  }

  #wait(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiting), 1)
        this.#letIn()
        reject(signal?.reason as Error)
      }
      const go = (): void => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      const waiting = { bytes, go }
      this.#waiting.push(waiting)
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }

  #letIn(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#usedBytes + next.bytes > this.#options.maxBytes) return
      this.#usedBytes += next.bytes
      this.#waiting.shift()
      next.go()
    }
  }

  async #remove(paths: readonly string[], release: () => void): Promise<void> {
    try {
      for (const path of paths) await rm(path, { force: true })
    } finally {
      release()
    }
  }
}

function localPathOf(storage: Storage, location: string): string | undefined {
  if (storage.localPath !== undefined) return storage.localPath(location)
  return parseLocation(location).scheme === 'file' ? pathOf(location) : undefined
}

/** DuckDB looks at the end of a name. */
function extensionOf(location: string): string {
  return /\.[A-Za-z0-9]{1,10}$/.exec(location)?.[0] ?? ''
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= work())
}
