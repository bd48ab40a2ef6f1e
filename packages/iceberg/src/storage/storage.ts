import { IcebergError } from '../errors.ts'

/** A part of a file, in bytes. */
export interface ByteRange {
  readonly offset: number
  readonly length: number
}

export interface ListedFile {
  readonly location: string
  readonly size: number
  /** By the clock of the storage. */
  readonly modifiedAt: Date
}

export interface FailedDelete {
  readonly location: string
  readonly error: Error
}

/** Where the files of tables are. Every error is an IcebergError with a storage_… or location_invalid code. */
export interface Storage {
  /** The whole file, or exactly the range; a range that is not inside the file is an error. */
  read(location: string, range?: ByteRange): Promise<Uint8Array>
  size(location: string): Promise<number>
  /**
   * Writes the whole file or nothing: readers never see a part of it. `exclusive` fails with storage_exists, and never
   * overwrites, when the file is there. After storage_failed the file may have been written all the same.
   */
  write(
    location: string,
    content: Uint8Array | AsyncIterable<Uint8Array>,
    options?: { exclusive?: boolean },
  ): Promise<void>
  /**
   * Every file below a folder, in no order: `…/t` lists `…/t/x` and never `…/t2/x`. A folder that is not there is empty.
   * The locations begin with the folder as it was spelled. Fails rather than leave something out.
   */
  list(folder: string): AsyncIterable<ListedFile>
  /** Deletes what it can and returns what it could not. A file that is not there is no error. */
  delete(locations: readonly string[]): Promise<FailedDelete[]>
  exists(location: string): Promise<boolean>
  /**
   * The path of a file that is on this machine, to be opened without a copy; undefined of others. A storage without this
   * is thought to have its `file:` locations where they say.
   */
  localPath?(location: string): string | undefined
}

/** A storage that also knows folders, as a catalog made of folders needs it. */
export interface FolderStorage extends Storage {
  /** The names of the folders directly in one; none when it is not there. */
  folders(folder: string): Promise<string[]>
  /** Makes an empty folder, and those above it. */
  makeFolder(folder: string): Promise<void>
  /** Removes a folder, and the folders in it. What is in use is kept: it fails when there are files. */
  removeFolder(folder: string): Promise<void>
  /** Whether there is such a folder, empty or not. */
  folderExists(folder: string): Promise<boolean>
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
