import type { LoadedTable } from '../catalogs/catalog.ts'
import { tableName } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile, PartitionValues } from '../manifests/content-file.ts'
import { partitionTypesOf } from '../manifests/partition-type.ts'
import { partitionSpecOf, schemaOf, sortOrderOf } from '../metadata/table-metadata.ts'
import type { Field } from '../schema/type.ts'
import { assertWritable } from '../metadata/validate.ts'
import { execute, sqlName, type DuckDb } from '../parquet/duckdb.ts'
import type { FileMetrics } from '../parquet/file-metrics.ts'
import { loadRows, newRows } from '../parquet/load-rows.ts'
import { metricsModes, type MetricsMode } from '../parquet/metrics-modes.ts'
import { writeParquetFile, type NotedSelect } from '../parquet/write-file.ts'
import { assertWritableColumns } from '../parquet/write-types.ts'
import type { Row } from '../parquet/write-values.ts'
import { NewFiles } from '../storage/new-files.ts'
import { newDataLocation } from './data-location.ts'
import { measuredRowBytes, partSizes, rowsOfNextFile, targetFileBytes, type PartSize } from './file-sizes.ts'
import { partitionPath } from '../manifests/partition-path.ts'
import { router } from './route-rows.ts'
import { rowSort, type RowSort } from './sort-rows.ts'
import { propertyOf, tableProperties } from '../properties.ts'

/** Rows to be written: in memory, or as they come. */
export type Rows = Iterable<Row> | AsyncIterable<Row>

export interface WriteFilesOptions {
  /** Rows of one file at most; the others go into further files. Default: no limit but the table's size of files. */
  readonly maxRowsPerFile?: number
  /** Ends the writing of files; what was written is removed. A statement of DuckDB that is under way is waited for. */
  readonly signal?: AbortSignal | undefined
}

/** Refuses tables that this package must not or cannot write rows to, before anything is written. */
export function assertCanWriteRows(table: LoadedTable, fields = schemaOf(table.metadata).fields): void {
  assertCanAddFiles(table)
  assertWritableColumns({ fields }, tableName(table.identifier))
}

/** The same of Parquet files whose rows are written already. */
export function assertCanAddFiles(table: LoadedTable): void {
  const { metadata } = table
  assertWritable(metadata)
  const format = propertyOf(metadata, tableProperties.fileFormat)
  if (format !== 'parquet') {
    throw new IcebergError(
      'metadata_unsupported',
      `${tableName(table.identifier)} wants its files as ${format} (write.format.default); only parquet can be written`,
    )
  }
  newDataLocation(metadata, '')
}

/** Writes rows as data files of the table's schema and default spec, each row into the partition it belongs to. */
export async function writeDataFiles(
  duckdb: DuckDb,
  table: LoadedTable,
  rows: Rows,
  options: WriteFilesOptions = {},
): Promise<ContentFile[]> {
  assertCanWriteRows(table)
  const { metadata } = table
  const { fields } = schemaOf(metadata)
  const order = sortOrderOf(metadata)
  const sort = rowSort(order, fields)
  return await writePartitioned(duckdb, table, rows, {
    content: 'data',
    fields,
    modes: metricsModes(schemaOf(metadata), metadata.properties, order),
    specId: metadata.defaultSpecId,
    sort,
    sortOrderId: sort.sortOrderId,
    ...options,
  })
}

/** What files are made of. */
export interface FileKind {
  readonly content: ContentFile['content']
  readonly fields: readonly Field[]
  readonly modes: ReadonlyMap<number, MetricsMode>
  readonly specId: number
  readonly sortOrderId?: number
  readonly equalityIds?: readonly number[]
}

/** Writes rows into a file, or several, for each partition of the spec. */
export async function writePartitioned(
  duckdb: DuckDb,
  table: LoadedTable,
  rows: Rows,
  kind: FileKind & WriteFilesOptions & { readonly sort?: RowSort },
): Promise<ContentFile[]> {
  const { fields, sort } = kind
  const { route, partitions } = router(partitionSpecOf(table.metadata, kind.specId), { fields })
  return await duckdb.using(async (connection) => {
    await loadRows(connection, fields, rows, route, sort?.keys)
    const parts = partitions.map((partition) => ({ kind, partition }))
    return (await writeParts(connection, table, parts, sort?.orderBy ?? '', kind)).flat()
  })
}

/** A part of the rows, by its number: of one partition. */
export interface Part {
  readonly kind: FileKind
  readonly partition: PartitionValues
}

/**
 * Writes parts of `new_rows`, all of the same columns, each into as many files as it needs. The files are whole and
 * durable when this returns.
 */
export async function writeParts(
  connection: Connection,
  table: LoadedTable,
  parts: readonly Part[],
  orderBy: string,
  options: WriteFilesOptions = {},
): Promise<ContentFile[][]> {
  const [first] = parts
  if (first === undefined) return []
  const sizes = await partSizes(connection, first.kind.fields)
  const written: ContentFile[][] = []
  const newFiles = new NewFiles(table.storage, options)
  try {
    for (const [number, part] of parts.entries()) {
      const files: ContentFile[] = []
      written.push(files)
      const size = sizes.get(number)
      if (size === undefined) continue
      const columns = part.kind.fields
        .map((field, index) => `${newRows}.c${index} as ${sqlName(field.name)}`)
        .join(', ')
      const select = `select ${columns} from ${newRows} where ${newRows}.part = ${number} ${orderBy}`
      for await (const file of filesOf(connection, newFiles, table, part, { select, ...size }, options)) {
        files.push(file)
      }
    }
    await newFiles.keep()
    return written
  } catch (error) {
    await newFiles.remove()
    throw error
  }
}

async function* filesOf(
  connection: Connection,
  newFiles: NewFiles,
  table: LoadedTable,
  { kind, partition }: Part,
  { select, rows, plainBytes }: PartSize & { readonly select: string },
  { maxRowsPerFile = Number.POSITIVE_INFINITY }: WriteFilesOptions,
): AsyncGenerator<ContentFile> {
  const target = targetFileBytes(table.metadata, kind.content)
  if (plainBytes <= target && rows <= maxRowsPerFile) {
    yield await writeFile(connection, newFiles, table, kind, select, partition)
    return
  }
  // Sorted once for all files: rows that are equal in the order may come in another one the next time.
  await execute(connection, `create or replace temporary table part_rows as ${select}`)
  const { properties } = table.metadata
  const options = { fields: kind.fields, modes: kind.modes, properties }
  const measured = plainBytes <= target ? 0 : await measuredRowBytes(connection, 'part_rows', rows, options)
  let rowBytes = measured
  for (let done = 0; done < rows;) {
    const next = rowsOfNextFile(rows - done, rowBytes, target, maxRowsPerFile)
    const range = `from part_rows where rowid >= ${done} and rowid < ${done + next}`
    const file = await writeFile(connection, newFiles, table, kind, range, partition)
    yield file
    if (file.recordCount !== next) {
      throw new IcebergError('parquet_failed', `DuckDB wrote ${file.recordCount} rows to ${file.filePath}, not ${next}`)
    }
    done += next
    if (measured > 0) rowBytes = Math.max(measured, file.fileSizeInBytes / next)
  }
}

type Connection = Parameters<typeof writeParquetFile>[0]

/** Writes the rows of a select as one file of a partition. It belongs to `newFiles`: it is there when they are kept. */
export async function writeFile(
  on: DuckDb | Connection,
  newFiles: NewFiles,
  table: LoadedTable,
  kind: FileKind,
  select: string | NotedSelect,
  partition: PartitionValues,
  check: (connection: Connection, path: string) => Promise<void> = async () => undefined,
): Promise<ContentFile> {
  const { metadata } = table
  const spec = partitionSpecOf(metadata, kind.specId)
  const types = partitionTypesOf(metadata, kind.specId)
  const folders = partitionPath(spec, types, partition)
  const filePath = newDataLocation(metadata, folders, kind.content === 'data' ? '.parquet' : '-deletes.parquet')
  const { properties } = metadata
  const write = async (connection: Connection, path: string): Promise<FileMetrics> => {
    const options = { fields: kind.fields, modes: kind.modes, properties }
    const metrics = await writeParquetFile(connection, select, path, options)
    await check(connection, path)
    return metrics
  }
  const metrics = await newFiles.write(filePath, (path) =>
    'using' in on ? on.using((connection) => write(connection, path)) : write(on, path),
  )
  const { content, specId, equalityIds } = kind
  const sortOrderId = content === 'data' ? kind.sortOrderId : undefined
  return { content, filePath, fileFormat: 'parquet', specId, partition, ...metrics, equalityIds, sortOrderId }
}
