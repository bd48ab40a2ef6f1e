import type { LoadedTable } from '../catalogs/catalog.ts'
import type { ContentFile } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import { currentSnapshot, mainBranch, partitionSpecOf, type TableMetadata } from '../metadata/table-metadata.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import { readManifests } from '../snapshot/read-manifests.ts'
import { partitionTypesOf } from '../manifests/partition-type.ts'
import { manifestsOf } from '../snapshot/live-files.ts'
import { partitionPath } from '../manifests/partition-path.ts'
import { assertBranch } from '../metadata/refs.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { Fragmentation, type FragmentedPartition } from './fragmentation.ts'

export interface FactsOptions {
  /** Default: main. */
  readonly branch?: string
  /** The size files should have. Default: `write.target-file-size-bytes`, or 512 MiB. */
  readonly targetFileBytes?: number
  /** A data file is small below this share of the target. Default 0.75, as the rewrite of data files has it. */
  readonly smallFileShare?: number
  /** How many of the most fragmented partitions are named. Default 10. */
  readonly partitions?: number
  /** Partitions that are told apart; in a table of more, only these are, and `exact` is false. Default 100,000. */
  readonly maxPartitions?: number
  readonly nowMs?: number
}

/** What is known of the health of a table from its metadata and manifests alone. Sizes are bytes. */
export interface TableFacts {
  readonly dataFiles: FileFacts & { readonly small: number; readonly smallBytes: number }
  readonly deleteFiles: {
    readonly files: number
    readonly bytes: number
    readonly positionFiles: number
    readonly positionDeletes: number
    readonly equalityFiles: number
    readonly equalityDeletes: number
    readonly vectors: number
    readonly vectorDeletes: number
  }
  readonly snapshots: {
    readonly count: number
    readonly oldestMs: number | undefined
    readonly newestMs: number | undefined
    readonly branches: number
    readonly tags: number
  }
  readonly manifests: {
    readonly count: number
    readonly bytes: number
    readonly ofDeletes: number
    /** Manifests below half the target size, and the least that could hold what is in them. */
    readonly small: number
    readonly mergeable: number
  }
  readonly partitions: {
    readonly count: number
    readonly exact: boolean
    readonly mostFragmented: readonly FragmentedPartition[]
  }
  readonly metadata: {
    readonly logEntries: number
    readonly oldestLogMs: number | undefined
    /** How long ago the oldest metadata that is still known was written: orphans may be as old as this and older. */
    readonly oldestAgeMs: number | undefined
  }
}

export interface FileFacts {
  readonly files: number
  readonly records: number
  readonly bytes: number
  /** Files by size: `files` of them below `belowBytes` and not below the step before; the last step has no end. */
  readonly histogram: readonly {
    readonly belowBytes: number | undefined
    readonly files: number
    readonly bytes: number
  }[]
}

const mebibyte = 1024 ** 2
const steps = [1, 8, 32, 64, 128, 256, 512, 1024].map((size) => size * mebibyte)

/**
 * Gathers the facts of a branch. Manifests are decoded one at a time and without statistics, so memory grows with the
 * number of partitions, up to `maxPartitions`, and not with the number of files.
 */
export async function tableFacts(table: LoadedTable, options: FactsOptions = {}): Promise<TableFacts> {
  const { metadata } = table
  const target = options.targetFileBytes ?? propertyOf(metadata, tableProperties.targetFileBytes)
  const counted = new Counted(target * (options.smallFileShare ?? 0.75))
  const fragmentation = new Fragmentation(options.maxPartitions ?? 100_000)
  const { branch = mainBranch } = options
  assertBranch(metadata, branch)
  const manifests = await manifestsOf(table, currentSnapshot(metadata, branch))
  const live = manifests.filter((manifest) => manifest.addedFilesCount !== 0 || manifest.existingFilesCount !== 0)
  const partitionOf = (specId: number) => partitionTypesOf(metadata, specId)
  for await (const { manifest, entries } of readManifests(table.storage, live, { partitionOf, statistics: false })) {
    const types = partitionOf(manifest.partitionSpecId)
    const spec = partitionSpecOf(metadata, manifest.partitionSpecId)
    for (const { file } of entries) {
      const isSmall = counted.add(file)
      const key = partitionKey(file.specId, file.partition)
      fragmentation.add(key, () => partitionPath(spec, types, file.partition), file, isSmall)
    }
  }
  return {
    dataFiles: counted.dataFiles(),
    deleteFiles: counted.deletes,
    snapshots: snapshotFacts(metadata),
    manifests: manifestFacts(metadata, manifests),
    partitions: fragmentation.most(options.partitions ?? 10),
    metadata: logFacts(metadata, options.nowMs ?? Date.now()),
  }
}

class Counted {
  readonly #smallBelow: number
  readonly #histogram = [...steps, undefined].map((belowBytes) => ({ belowBytes, files: 0, bytes: 0 }))
  readonly #data = { files: 0, records: 0, bytes: 0, small: 0, smallBytes: 0 }
  readonly deletes = {
    files: 0,
    bytes: 0,
    positionFiles: 0,
    positionDeletes: 0,
    equalityFiles: 0,
    equalityDeletes: 0,
    vectors: 0,
    vectorDeletes: 0,
  }

  constructor(smallBelow: number) {
    this.#smallBelow = smallBelow
  }

  /** Whether it is a small data file. */
  add(file: ContentFile): boolean {
    if (file.content !== 'data') {
      this.#addDeletes(file)
      return false
    }
    const { fileSizeInBytes: bytes, recordCount } = file
    const isSmall = bytes < this.#smallBelow
    this.#data.files += 1
    this.#data.records += recordCount
    this.#data.bytes += bytes
    if (isSmall) {
      this.#data.small += 1
      this.#data.smallBytes += bytes
    }
    const step = this.#histogram.find(({ belowBytes }) => belowBytes === undefined || bytes < belowBytes)
    if (step !== undefined) {
      step.files += 1
      step.bytes += bytes
    }
    return isSmall
  }

  #addDeletes(file: ContentFile): void {
    const { deletes } = this
    deletes.files += 1
    deletes.bytes += file.contentSizeInBytes ?? file.fileSizeInBytes
    if (file.content === 'equality-deletes') {
      deletes.equalityFiles += 1
      deletes.equalityDeletes += file.recordCount
    } else if (file.contentOffset === undefined) {
      deletes.positionFiles += 1
      deletes.positionDeletes += file.recordCount
    } else {
      deletes.vectors += 1
      deletes.vectorDeletes += file.recordCount
    }
  }

  dataFiles(): TableFacts['dataFiles'] {
    return { ...this.#data, histogram: this.#histogram }
  }
}

function snapshotFacts(metadata: TableMetadata): TableFacts['snapshots'] {
  const times = metadata.snapshots.map((snapshot) => snapshot.timestampMs)
  const refs = [...metadata.refs.values()]
  return {
    count: times.length,
    oldestMs: times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b)),
    newestMs: times.length === 0 ? undefined : times.reduce((a, b) => Math.max(a, b)),
    branches: refs.filter((ref) => ref.type === 'branch').length,
    tags: refs.filter((ref) => ref.type === 'tag').length,
  }
}

function manifestFacts(metadata: TableMetadata, manifests: readonly ManifestFile[]): TableFacts['manifests'] {
  const target = propertyOf(metadata, tableProperties.manifestTargetBytes)
  const small = manifests.filter((manifest) => manifest.manifestLength < target / 2)
  // Only manifests of one spec and one kind can become one.
  const kinds = new Map<string, { count: number; bytes: number }>()
  for (const { partitionSpecId, content, manifestLength } of small) {
    const kind = kinds.get(`${partitionSpecId} ${content}`) ?? { count: 0, bytes: 0 }
    kinds.set(`${partitionSpecId} ${content}`, { count: kind.count + 1, bytes: kind.bytes + manifestLength })
  }
  let mergeable = 0
  for (const { count, bytes } of kinds.values())
    mergeable += Math.max(0, count - Math.max(1, Math.ceil(bytes / target)))
  return {
    count: manifests.length,
    bytes: manifests.reduce((sum, manifest) => sum + manifest.manifestLength, 0),
    ofDeletes: manifests.filter((manifest) => manifest.content === 'deletes').length,
    small: small.length,
    mergeable,
  }
}

function logFacts(metadata: TableMetadata, nowMs: number): TableFacts['metadata'] {
  const oldest = metadata.metadataLog.reduce<number | undefined>(
    (least, entry) => (least === undefined ? entry.timestampMs : Math.min(least, entry.timestampMs)),
    undefined,
  )
  return {
    logEntries: metadata.metadataLog.length,
    oldestLogMs: oldest,
    oldestAgeMs: oldest === undefined ? undefined : Math.max(0, nowMs - oldest),
  }
}
