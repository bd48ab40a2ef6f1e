import type { LoadedTable } from '../../catalogs/catalog.ts'
import { CandidateFiles, marks, type CandidateFile } from '../../snapshot/candidate-files.ts'
import { ReachableWalk, statisticsFilesOf } from '../../snapshot/reachable.ts'
import { below, fileName, parseLocation } from '../../storage/location.ts'
import { metadataFolderOf } from '../own-locations.ts'
import { hiddenPaths } from './hidden-paths.ts'
import type { OrphanSettings } from './options.ts'
import { Prefixes } from './prefixes.ts'
import { RealPaths } from './real-paths.ts'

// The candidates are what a listing found and is old enough. Everything that the table refers to, as it is loaded after
// the listing, is marked among them; what has no mark is an orphan. A table that has changed since is walked again, which
// reads only what is new in it.

/** What a listing came to. */
export interface Listed {
  readonly files: number
  readonly bytes: number
  /** Hidden files, which are left alone. */
  readonly hidden: number
  /** Files that are too young to go. */
  readonly young: number
}

const metadataPattern = /(\.metadata\.json|\.metadata\.json\.gz)$/
const hintName = 'version-hint.text'

export class OrphanSearch {
  readonly #settings: OrphanSettings
  readonly #candidates: CandidateFiles
  readonly #walk: ReachableWalk
  readonly #prefixes: Prefixes
  readonly #signal: AbortSignal | undefined
  readonly #folderPath: string
  readonly #realPaths: RealPaths | undefined
  /** Metadata files of the listing, of any age. */
  readonly metadataFiles: { readonly path: string; readonly modifiedAtMs: number }[] = []
  #reached = 0
  #reachedInside = 0
  #currentVersion: number | undefined
  #knownMetadata = new Set<string>()

  private constructor(
    table: LoadedTable,
    settings: OrphanSettings,
    candidates: CandidateFiles,
    signal: AbortSignal | undefined,
  ) {
    this.#settings = settings
    this.#candidates = candidates
    this.#signal = signal
    this.#walk = new ReachableWalk(table.storage, { signal })
    this.#prefixes = new Prefixes(settings.location, settings)
    const folder = this.#prefixes.pathOf(settings.location)
    this.#folderPath = `${folder}/`
    this.#realPaths = parseLocation(settings.location).scheme === 'file' ? new RealPaths(folder) : undefined
  }

  static async open(
    table: LoadedTable,
    settings: OrphanSettings,
    options: { readonly memoryBytes?: number | undefined; readonly signal?: AbortSignal | undefined },
  ): Promise<OrphanSearch> {
    const { memoryBytes, signal } = options
    const candidates = await CandidateFiles.open(memoryBytes === undefined ? {} : { memoryBytes })
    return new OrphanSearch(table, settings, candidates, signal)
  }

  get candidates(): CandidateFiles {
    return this.#candidates
  }

  get bytesRead(): number {
    return this.#walk.bytesRead
  }

  /** Whether the table refers to files, and to none below the folder: then they are spelled in another way there. */
  get missesAll(): boolean {
    return this.#reached > 0 && this.#reachedInside === 0
  }

  readonly keyOf = (path: string): string => this.#prefixes.pathOf(path)

  /** Lists the folder. What is old enough becomes a candidate. */
  async list({ metadata, storage }: LoadedTable, onFiles: (files: number) => void): Promise<Listed> {
    const { location, olderThanMs } = this.#settings
    const isHidden = hiddenPaths(metadata)
    const listed = { files: 0, bytes: 0, hidden: 0, young: 0 }
    for await (const { location: path, size, modifiedAt } of storage.list(location, { signal: this.#signal })) {
      if (isHidden(path.slice(location.length + 1))) {
        listed.hidden += 1
        continue
      }
      listed.files += 1
      listed.bytes += size
      if (listed.files % 10_000 === 0) onFiles(listed.files)
      const modifiedAtMs = modifiedAt.getTime()
      const isMetadata = metadataPattern.test(path)
      if (isMetadata) this.metadataFiles.push({ path, modifiedAtMs })
      if (modifiedAtMs >= olderThanMs) listed.young += 1
      else this.add({ path, kind: isMetadata ? 'metadata' : 'other', bytes: size, modifiedAtMs })
    }
    return listed
  }

  add(file: CandidateFile): void {
    this.#candidates.add(this.keyOf(file.path), file)
  }

  /** Marks what the table refers to and was not marked before. */
  readonly markReachable = async (table: LoadedTable): Promise<void> => {
    const { metadata } = table
    for (const path of metadataFilesOf(table)) {
      this.#knownMetadata.add(this.keyOf(path))
      this.#mark(path)
    }
    this.#currentVersion = table.metadataLocation === undefined ? undefined : versionOf(table.metadataLocation)
    for (const { path } of statisticsFilesOf(metadata)) this.#mark(path)
    for await (const found of this.#walk.all(metadata.snapshots)) {
      for (const { path } of found) {
        this.#reached += 1
        if (this.#mark(path)) this.#reachedInside += 1
      }
    }
  }

  /** Returns whether it is below the folder that was listed. */
  #mark(location: string): boolean {
    const { path, prefix } = this.#prefixes.compare(location)
    if (prefix === 'same') this.#candidates.mark(path, marks.reached)
    else if (this.#settings.prefixMismatchMode !== 'delete') this.#candidates.mark(path, marks.suspect)
    const listedAs = prefix === 'same' ? this.#realPaths?.listedAs(path) : undefined
    if (listedAs !== undefined && listedAs !== path) this.#candidates.mark(listedAs, marks.reached)
    return listedAs !== undefined || path.startsWith(this.#folderPath)
  }

  /** Whether the table's own log names a metadata file. */
  isKnownMetadata(path: string): boolean {
    return this.#knownMetadata.has(this.keyOf(path))
  }

  /**
   * Whether a file without a mark may go. Metadata that is newer than what was loaded may be the table's next, and without
   * knowing which file is the current one, none of them can be told from it.
   */
  readonly mayGo = (path: string): boolean => {
    if (!metadataPattern.test(path)) return true
    if (this.#currentVersion === undefined) return false
    return versionOf(path) <= this.#currentVersion
  }

  async close(): Promise<void> {
    await this.#candidates.close()
  }
}

/** The metadata files that a table knows, and the hint that leads to the current one. */
function metadataFilesOf({ metadata, metadataLocation }: LoadedTable): string[] {
  return [
    ...(metadataLocation === undefined ? [] : [metadataLocation]),
    ...metadata.metadataLog.map(({ metadataFile }) => metadataFile),
    below(metadataFolderOf(metadata), hintName),
    below(metadata.location, 'metadata', hintName),
  ]
}

/** `00012-….metadata.json` and `v12.metadata.json` are 12; -1 of other names, as catalogs count them. */
function versionOf(location: string): number {
  const digits = /^(?:v(\d+)\.|(\d+)-)/.exec(fileName(location))
  return digits === null ? -1 : Number(digits[1] ?? digits[2])
}
