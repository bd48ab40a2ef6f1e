import { IcebergError } from './errors.ts'

// Every table property that this package reads: its key, its default, and what its text means. Numbers of bytes that
// are none are refused, since files of the wrong size would be written. Other numbers that are none count as absent.

/** A property of tables. */
export interface Property<T> {
  readonly key: string
  readonly default: T
  /** `location` is that of the table, for messages. */
  readonly parse: (text: string, location: string | undefined) => T
}

/** Anything with the properties of a table, such as its metadata. */
export interface HasProperties {
  readonly properties: Readonly<Record<string, string>>
  readonly location?: string
}

/** What is kept of a column in manifests; `truncate` cuts texts and binaries to so many code points or bytes. */
export type MetricsMode =
  { readonly mode: 'none' | 'counts' | 'full' } | { readonly mode: 'truncate'; readonly length: number }

const mebibyte = 1024 ** 2
const dayMs = 86_400_000

/** Of the table properties, those with one key each. */
export const tableProperties = {
  encryptionKeyId: text('encryption.key-id'),
  nameMapping: text('schema.name-mapping.default'),

  fileFormat: word('write.format.default', 'parquet'),
  targetFileBytes: bytes('write.target-file-size-bytes', 512 * mebibyte),
  targetDeleteFileBytes: bytes('write.delete.target-file-size-bytes', 64 * mebibyte),
  parquetCodec: word('write.parquet.compression-codec', 'zstd'),
  parquetCompressionLevel: text('write.parquet.compression-level'),
  /** 0 leaves it to DuckDB. */
  parquetRowGroupBytes: count('write.parquet.row-group-size-bytes', 0),
  locationProvider: text('write.location-provider.impl'),
  dataPath: text('write.data.path'),
  objectStoragePath: text('write.object-storage.path'),
  folderStoragePath: text('write.folder-storage.path'),
  objectStorageEnabled: flag('write.object-storage.enabled', false),
  objectStoragePartitionedPaths: flag('write.object-storage.partitioned-paths', true),

  metadataPath: text('write.metadata.path'),
  metadataCodec: word('write.metadata.compression-codec', 'none'),
  previousMetadataMax: count('write.metadata.previous-versions-max', 100),
  deleteMetadataAfterCommit: flag('write.metadata.delete-after-commit.enabled', false),
  metricsDefault: metrics('write.metadata.metrics.default'),
  metricsMaxInferredColumns: count('write.metadata.metrics.max-inferred-column-defaults', 100),

  manifestCodec: word('write.manifest.compression-codec', 'gzip'),
  manifestTargetBytes: bytes('commit.manifest.target-size-bytes', 8 * mebibyte),
  manifestMinCountToMerge: count('commit.manifest.min-count-to-merge', 100),
  manifestMergeEnabled: flag('commit.manifest-merge.enabled', true),

  commitRetries: count('commit.retry.num-retries', 4),
  commitMinWaitMs: count('commit.retry.min-wait-ms', 100),
  commitMaxWaitMs: count('commit.retry.max-wait-ms', 60_000),
  commitTotalMs: count('commit.retry.total-timeout-ms', 1_800_000),
  statusCheckRetries: count('commit.status-check.num-retries', 3),
  statusCheckMinWaitMs: count('commit.status-check.min-wait-ms', 1000),
  statusCheckMaxWaitMs: count('commit.status-check.max-wait-ms', 60_000),
  statusCheckTotalMs: count('commit.status-check.total-timeout-ms', 1_800_000),

  maxSnapshotAgeMs: count('history.expire.max-snapshot-age-ms', 5 * dayMs),
  minSnapshotsToKeep: count('history.expire.min-snapshots-to-keep', 1),
  maxRefAgeMs: count('history.expire.max-ref-age-ms', Infinity),
  gcEnabled: flag('gc.enabled', true),
} satisfies Record<string, Property<unknown>>

/** The property that says what is kept of one column. */
export function columnMetrics(path: readonly string[]): Property<MetricsMode | undefined> {
  return metrics(`write.metadata.metrics.column.${path.join('.')}`)
}

export function propertyOf<T>({ properties, location }: HasProperties, property: Property<T>): T {
  const given = properties[property.key]
  return given === undefined ? property.default : property.parse(given, location)
}

function text(key: string): Property<string | undefined> {
  return { key, default: undefined, parse: (given) => given }
}

/** A name that is spelled in any case. */
function word(key: string, otherwise: string): Property<string> {
  return { key, default: otherwise, parse: (given) => given.toLowerCase() }
}

/** As Java reads it: everything but "true" is false. */
function flag(key: string, otherwise: boolean): Property<boolean> {
  return { key, default: otherwise, parse: (given) => given.trim().toLowerCase() === 'true' }
}

function count(key: string, otherwise: number): Property<number> {
  const parse = (given: string): number => {
    const value = given.trim() === '' ? NaN : Number(given)
    return Number.isFinite(value) && value >= 0 ? value : otherwise
  }
  return { key, default: otherwise, parse }
}

function bytes(key: string, otherwise: number): Property<number> {
  const parse = (given: string, location: string | undefined): number => {
    const value = Number(given)
    if (value > 0 && Number.isFinite(value)) return value
    throw new IcebergError(
      'metadata_invalid',
      `${key} of the table at ${location ?? 'an unknown location'} is "${given}", which is not a number of bytes. ` +
        'Set it to one, or remove it.',
    )
  }
  return { key, default: otherwise, parse }
}

/** A mode as table properties spell it: none, counts, truncate(16), full. */
function metrics(key: string): Property<MetricsMode | undefined> {
  const parse = (given: string): MetricsMode => {
    const mode = given.trim().toLowerCase()
    if (mode === 'none' || mode === 'counts' || mode === 'full') return { mode }
    const length = Number(/^truncate\((\d+)\)$/.exec(mode)?.[1] ?? 0)
    if (length > 0) return { mode: 'truncate', length }
    throw new IcebergError(
      'metadata_invalid',
      `${key} is "${given}", which is not a metrics mode: use none, counts, truncate(16) or full`,
    )
  }
  return { key, default: undefined, parse }
}
