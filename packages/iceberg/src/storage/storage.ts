import { IcebergError } from '../errors.ts'

/** A part of a file, in bytes. */
export interface ByteRange {
  readonly offset: number
  readonly length: number
}

export interface ListedFile {
  readonly location: string
  readonly size: number
  /** By the clock of the storage: compare it with `now`, not with the time of this machine. */
  readonly modifiedAt: Date
}

export interface FailedDelete {
  readonly location: string
  readonly error: Error
}

/** What came of a delete. What is in neither list was deleted. */
export interface Deleted {
  readonly failed: readonly FailedDelete[]
  /** Was not there. S3 does not say so: there, a file that was not there counts as deleted. */
  readonly missing: readonly string[]
}

/** What every call takes. */
export interface CallOptions {
  /**
   * Ends the call within a second: it throws the signal's reason. Work that cannot be interrupted goes on unobserved and
   * is taken back where possible; a write, copy or delete may have been done all the same.
   */
  readonly signal?: AbortSignal | undefined
}

export interface WriteOptions extends CallOptions {
  readonly exclusive?: boolean
}

/**
 * A file of a storage while it is written on this machine. Whoever asked for it owns it until `adopt` has returned:
 *
 *     const draft = await storage.draft(location)
 *     try {
 *       await writeTo(draft.path)
 *       await storage.adopt([draft])
 *     } finally {
 *       await draft.discard()
 *     }
 *
 * `NewFiles` does this for many files, in batches.
 */
export interface Draft {
  readonly location: string
  /** Where to write it: nothing is there yet, and its folder exists. */
  readonly path: string
  /** Removes what is at the path, unless it was adopted. Never fails, and may be called twice. */
  discard(): Promise<void>
}

/**
 * Where the files of tables are. Every error is an IcebergError with a storage_… or location_invalid code, except the
 * reason of a signal. A file that a call has written is durable when the call returns.
 */
export interface Storage {
  /** The whole file, or exactly the range; a range that is not inside the file is an error. */
  read(location: string, range?: ByteRange, options?: CallOptions): Promise<Uint8Array>
  size(location: string, options?: CallOptions): Promise<number>
  /**
   * Writes the whole file or nothing: readers never see a part of it. `exclusive` fails with storage_exists, and never
   * overwrites, when the file is there. After storage_failed the file may have been written all the same.
   */
  write(location: string, content: Uint8Array | AsyncIterable<Uint8Array>, options?: WriteOptions): Promise<void>
  /** A place on this machine to write a file to: on the file system where it is to be, if that is on this machine. */
  draft(location: string, options?: CallOptions): Promise<Draft>
  /**
   * Takes finished drafts: each appears whole at its location, replacing what is there, and its path is gone. Give many
   * at once, and folders are synced once for all of them. After a failure any of the locations may have been written.
   */
  adopt(drafts: readonly Draft[], options?: CallOptions): Promise<void>
  /** Makes `to` the same as `from`, whole or not at all, replacing what is there; inside the storage where it can. */
  copy(from: string, to: string, options?: CallOptions): Promise<void>
  /**
   * Every file below a folder, in no order: `…/t` lists `…/t/x` and never `…/t2/x`. A folder that is not there is empty.
   * The locations begin with the folder as it was spelled. Fails rather than leave something out.
   */
  list(folder: string, options?: CallOptions): AsyncIterable<ListedFile>
  /** Deletes what it can and returns what it could not. A file that is not there is no error. */
  delete(locations: readonly string[], options?: CallOptions): Promise<Deleted>
  exists(location: string, options?: CallOptions): Promise<boolean>
  /** The time by the clock that dates the files of a folder, never later than that of a file written from now on. */
  now(folder: string, options?: CallOptions): Promise<Date>
  /**
   * The path of a file that is on this machine, to be opened without a copy; undefined of others. A storage without this
   * is thought to have its `file:` locations where they say.
   */
  localPath?(location: string): string | undefined
}

/** A storage that also knows folders, as a catalog made of folders needs it. */
export interface FolderStorage extends Storage {
  /** The names of the folders directly in one; none when it is not there. */
  folders(folder: string, options?: CallOptions): Promise<string[]>
  /** Makes an empty folder, and those above it. */
  makeFolder(folder: string, options?: CallOptions): Promise<void>
  /** Removes a folder, and the folders in it. What is in use is kept: it fails when there are files. */
  removeFolder(folder: string, options?: CallOptions): Promise<void>
  /** Whether there is such a folder, empty or not. */
  folderExists(folder: string, options?: CallOptions): Promise<boolean>
}

/** Whether a file is there, by what came of asking for its size. */
export async function isThere(size: Promise<number>): Promise<boolean> {
  try {
    await size
    return true
  } catch (error) {
    if (error instanceof IcebergError && error.code === 'storage_not_found') return false
    throw error
  }
}
