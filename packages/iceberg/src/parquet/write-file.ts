import type { DuckDBConnection } from '@duckdb/node-api'
import { IcebergError } from '../errors.ts'
import type { Field } from '../schema/type.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { explained, sqlText } from './duckdb.ts'
import { fileMetrics, type FileMetrics } from './file-metrics.ts'
import type { MetricsMode } from './metrics-modes.ts'
import { losesMinusZero } from './minus-zero.ts'
import { leaveIntegersPlain } from './plain-integers.ts'
import { fieldIds } from './write-types.ts'

export interface WriteFileOptions {
  /** The columns of the relation, in its order, with their field ids at every level. */
  readonly fields: readonly Field[]
  /** What is kept of each column, by its id; a column without a mode is kept nothing of. */
  readonly modes: ReadonlyMap<number, MetricsMode>
  /** The table's: compression and size of row groups are taken from them. */
  readonly properties: Readonly<Record<string, string>>
}

/** A select whose rows are noted while they are written. It may have to be written once more. */
export interface NotedSelect {
  readonly sql: string
  /** The same rows, not noted. */
  readonly again: string
  /** Called before each time it is written: what was noted before counts no more. */
  begin(): void
}

/**
 * Writes the rows of a select as one local Parquet file, and says of it what a manifest keeps. The select gives the
 * columns of `fields`, with their names and DuckDB types, in their order.
 */
export async function writeParquetFile(
  connection: DuckDBConnection,
  select: string | NotedSelect,
  path: string,
  options: WriteFileOptions,
): Promise<FileMetrics> {
  const noted = typeof select === 'string' ? { sql: select, again: select, begin: () => {} } : select
  const settings = [
    'format parquet',
    'return_stats',
    ...compression(options.properties),
    `field_ids ${fieldIds(options.fields)}`,
    ...rowGroups(options),
  ]
  const copy = (more: readonly string[]) => {
    noted.begin()
    return explained(
      connection.runAndReadAll(`copy (${noted.sql}) to ${sqlText(path)} (${[...settings, ...more].join(', ')})`),
    )
  }
  let reader = await copy([])
  if (await losesMinusZero(connection, noted.again, path)) reader = await copy(['dictionary_size_limit 0'])
  await leaveIntegersPlain(path)
  const statistics = reader.getRowObjectsJson()[0]?.['column_statistics']
  return await fileMetrics(connection, path, options, statisticsByColumn(statistics))
}

const codecs: Readonly<Record<string, string>> = {
  zstd: 'zstd',
  snappy: 'snappy',
  gzip: 'gzip',
  brotli: 'brotli',
  lz4: 'lz4_raw',
  lz4_raw: 'lz4_raw',
  uncompressed: 'uncompressed',
  none: 'uncompressed',
}

function compression(properties: Readonly<Record<string, string>>): string[] {
  const name = propertyOf({ properties }, tableProperties.parquetCodec)
  const codec = codecs[name]
  if (codec === undefined) {
    throw new IcebergError(
      'metadata_unsupported',
      `write.parquet.compression-codec is ${name}, which cannot be written: use ${Object.keys(codecs).join(', ')}`,
    )
  }
  const level = propertyOf({ properties }, tableProperties.parquetCompressionLevel)
  if (codec !== 'zstd' || level === undefined || !/^\d+$/.test(level)) return [`compression ${codec}`]
  return [`compression ${codec}`, `compression_level ${level}`]
}

/**
 * DuckDB counts the rows of a row group, and its bytes only when it may reorder rows. So the bytes that a table wants
 * are divided by what a row is likely to take: the groups are about as large, not exactly.
 */
function rowGroups({ properties, fields }: WriteFileOptions): string[] {
  const bytes = propertyOf({ properties }, tableProperties.parquetRowGroupBytes)
  if (bytes === 0) return []
  const rowBytes = fields.reduce((sum, field) => sum + likelyBytes(field), 0)
  return [`row_group_size ${Math.min(10_000_000, Math.max(2048, Math.floor(bytes / Math.max(1, rowBytes))))}`]
}

function likelyBytes({ type }: Field): number {
  switch (type.type) {
    case 'boolean':
      return 1
    case 'int':
    case 'float':
    case 'date':
      return 4
    case 'string':
    case 'binary':
      return 24
    case 'uuid':
    case 'decimal':
      return 16
    case 'struct':
      return type.fields.reduce((sum, field) => sum + likelyBytes(field), 0)
    case 'list':
    case 'map':
      return 64
    default:
      return 8
  }
}

/** The exact texts DuckDB has of each column, by its quoted path: `"point"."x"`. */
function statisticsByColumn(json: unknown): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const entries = (json ?? []) as { key: string; value: { key: string; value: string }[] }[]
  return new Map(entries.map(({ key, value }) => [key, new Map(value.map((item) => [item.key, item.value]))]))
}
