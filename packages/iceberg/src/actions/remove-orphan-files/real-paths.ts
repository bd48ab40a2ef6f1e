import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Finds files of this machine under the name that a listing of a folder has them by, when the table names them through
 * symbolic links to folders. Listings do not follow such links.
 * Limit: a link to a single file is not followed, for that would ask the disk about every file.
 */
export class RealPaths {
  readonly #folder: string
  readonly #realFolder: string
  readonly #known = new Map<string, string>()

  constructor(folder: string) {
    this.#folder = folder
    this.#realFolder = realOf(folder)
  }

  /** The path in the listing; undefined when the file is not in the folder. */
  listedAs(path: string): string | undefined {
    const parent = dirname(path)
    const real = this.#known.get(parent) ?? realOf(parent)
    this.#known.set(parent, real)
    if (real !== this.#realFolder && !real.startsWith(`${this.#realFolder}/`)) return undefined
    return `${this.#folder}${real.slice(this.#realFolder.length)}${path.slice(parent.length)}`
  }
}

/** A folder that is not there is called what it is called. */
function realOf(folder: string): string {
  try {
    return realpathSync.native(folder)
  } catch {
    return folder
  }
}
