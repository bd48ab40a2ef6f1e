import { setImmediate as otherWork } from 'node:timers/promises'
import { IcebergError } from '../errors.ts'
import { readManifestListPaths, readManifestPaths, type ListedManifest } from '../manifests/read-paths.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import type { Storage } from '../storage/storage.ts'
import { mapOrdered } from '../storage/ordered.ts'
import type { FileKind } from './candidate-files.ts'

// Everything that snapshots refer to, by path: manifest lists, manifests, the live files in them, statistics. Entries that
// say that a file was deleted do not count: the file was live in the snapshot that added it.
//
// A walk remembers by their exact paths which manifests it has read, and reads none twice: manifests never change. So
// when a table has changed, walking it again costs only what is new in it.

/** A file that is referred to. */
export interface ReachableFile {
  readonly path: string
  readonly kind: FileKind
  /** 0 where it is not known. */
  readonly bytes: number
}

export interface WalkOptions {
  /** Files that are read at the same time. Default 8. */
  readonly concurrency?: number
  readonly signal?: AbortSignal | undefined
  /**
   * Called with a manifest or manifest list that is not there; the walk goes on without what it refers to. Only for
   * snapshots that are to go: without it the walk fails.
   */
  readonly onMissing?: (path: string) => void
}

/** Bytes of manifests that wait to be decoded. A manifest that is larger is read alone. */
const maxWaitingBytes = 16 * 1024 * 1024
/** How long decoding may keep other work waiting. */
const sliceMs = 10

type Snapshots = Iterable<Pick<Snapshot, 'manifestList' | 'manifests'>>

export class ReachableWalk {
  readonly #storage: Storage
  readonly #options: WalkOptions
  readonly #lists = new Set<string>()
  readonly #manifests = new Map<string, ListedManifest>()
  readonly #read = new Set<string>()
  readonly #specIds = new Set<number>()
  #bytesRead = 0

  constructor(storage: Storage, options: WalkOptions = {}) {
    this.#storage = storage
    this.#options = options
  }

  get bytesRead(): number {
    return this.#bytesRead
  }

  /** The partition specs of all manifests that were listed. */
  get specIds(): ReadonlySet<number> {
    return this.#specIds
  }

  /** The manifest lists and manifests that were given so far. */
  *listed(): Generator<string> {
    yield* this.#lists
    yield* this.#manifests.keys()
  }

  hasManifest(path: string): boolean {
    return this.#manifests.has(path)
  }

  /** Reads manifest lists and keeps what is in them to itself: `listed()` has it. */
  async readLists(snapshots: Snapshots): Promise<void> {
    const lists = this.lists(snapshots)
    while ((await lists.next()).done !== true) continue
  }

  /** Reads the manifest lists that were not read before, and gives them with the manifests that are new in them. */
  async *lists(snapshots: Snapshots): AsyncGenerator<ReachableFile[]> {
    const fresh = new Set<string>()
    for (const { manifestList, manifests = [] } of snapshots) {
      if (manifestList === undefined) {
        // Old snapshots of v1 name their manifests themselves, and say nothing of them.
        const named = manifests.map((path) => ({ path, bytes: 0, specId: undefined }))
        yield this.#add(named)
      } else if (!this.#lists.has(manifestList)) {
        fresh.add(manifestList)
      }
    }
    const { concurrency = 8 } = this.#options
    for await (const { path, content } of mapOrdered(fresh, concurrency, (list) => this.#fetch(list))) {
      if (content === undefined) continue
      // Not before it is given: a walk that was broken off may go on where it was.
      this.#lists.add(path)
      const found: ReachableFile[] = [{ path, kind: 'manifest-list', bytes: content.length }]
      found.push(...this.#add(readManifestListPaths(content, path)))
      yield found
    }
  }

  #add(manifests: readonly (Omit<ListedManifest, 'specId'> & { specId: number | undefined })[]): ReachableFile[] {
    const found: ReachableFile[] = []
    for (const { path, bytes, specId } of manifests) {
      if (specId !== undefined) this.#specIds.add(specId)
      if (this.#manifests.has(path)) continue
      this.#manifests.set(path, { path, bytes, specId: specId ?? 0 })
      found.push({ path, kind: 'manifest', bytes })
    }
    return found
  }

  /** Reads the manifests that were listed and not read before, leaving out those that `skip` picks, and gives their files. */
  async *files(skip: (path: string) => boolean = () => false): AsyncGenerator<ReachableFile[]> {
    const { concurrency = 8, signal } = this.#options
    const wanted: ListedManifest[] = []
    for (const manifest of this.#manifests.values()) {
      if (this.#read.has(manifest.path) || skip(manifest.path)) continue
      wanted.push(manifest)
    }
    const weights = { of: (manifest: ListedManifest) => manifest.bytes, max: maxWaitingBytes }
    const fetched = mapOrdered(wanted, concurrency, ({ path }) => this.#fetch(path), weights)
    let since = performance.now()
    for await (const { path: manifest, content } of fetched) {
      if (content === undefined) continue
      for (const paths of readManifestPaths(content, manifest)) {
        yield paths.map(({ path, content: kind, bytes }) => ({ path, kind, bytes }))
        if (performance.now() - since < sliceMs) continue
        await otherWork()
        signal?.throwIfAborted()
        since = performance.now()
      }
      this.#read.add(manifest)
    }
  }

  /** Everything that these snapshots refer to and that was not given before. */
  async *all(snapshots: Snapshots): AsyncGenerator<ReachableFile[]> {
    yield* this.lists(snapshots)
    yield* this.files()
  }

  async #fetch(path: string): Promise<{ path: string; content: Uint8Array | undefined }> {
    const { signal, onMissing } = this.#options
    signal?.throwIfAborted()
    try {
      const content = await this.#storage.read(path, undefined, { signal })
      this.#bytesRead += content.length
      return { path, content }
    } catch (error) {
      if (onMissing === undefined || !(error instanceof IcebergError) || error.code !== 'storage_not_found') throw error
      onMissing(path)
      return { path, content: undefined }
    }
  }
}

/** The statistics files that metadata names for these snapshots; all when none are given. */
export function statisticsFilesOf(
  metadata: Pick<TableMetadata, 'statistics' | 'partitionStatistics'>,
  isOf: (snapshotId: bigint) => boolean = () => true,
): ReachableFile[] {
  const of = (
    files: readonly { snapshotId: bigint; statisticsPath: string; fileSizeInBytes: bigint }[],
    kind: FileKind,
  ): ReachableFile[] =>
    files
      .filter((file) => isOf(file.snapshotId))
      .map((file) => ({ path: file.statisticsPath, kind, bytes: Number(file.fileSizeInBytes) }))
  return [...of(metadata.statistics, 'statistics'), ...of(metadata.partitionStatistics, 'partition-statistics')]
}
