import { createReadStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { LoadedTable } from '../catalogs/catalog.ts'
import { tableName } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile, PartitionValues } from '../manifests/content-file.ts'
import { partitionType } from '../manifests/partition-type.ts'
import type { SortOrder } from '../metadata/sort-order.ts'
import { partitionSpecOf, schemaOf, sortOrderOf } from '../metadata/table-metadata.ts'
import type { Field } from '../metadata/type.ts'
import { assertWritable } from '../metadata/validate.ts'
import { sqlName, type DuckDb } from '../parquet/duckdb.ts'
import type { FileMetrics } from '../parquet/file-metrics.ts'
import { loadRows } from '../parquet/load-rows.ts'
import { metricsModes, type MetricsMode } from '../parquet/metrics-modes.ts'
import { writeParquetFile } from '../parquet/write-file.ts'
import { assertWritableColumns } from '../parquet/write-types.ts'
import type { Row } from '../parquet/write-values.ts'
import { pathOf } from '../storage/local-storage.ts'
import { parseLocation } from '../storage/location.ts'
import { temporaryFolder } from '../storage/temporary-folder.ts'
import { newDataLocation } from './data-location.ts'
import { partitionPath } from './partition-path.ts'
import { removeFiles } from './remove-files.ts'
import { router } from './route-rows.ts'

/** Rows to be written: in memory, or as they come. */
export type Rows = Iterable<Row> | AsyncIterable<Row>

/** A DuckDB select whose columns are those of the table, in its order; the rows are all of one partition. */
export interface Relation {
  readonly select: string
  /** The spec its partition is of. Default: the table's default spec. */
  readonly specId?: number
  /** Default: that of an unpartitioned table. */
  readonly partition?: PartitionValues
}

export interface WriteFilesOptions {
  /** Rows of one file at most; the others go into further files. Default: no limit. */
  readonly maxRowsPerFile?: number
}

/** Refuses tables that this package must not or cannot write rows to, before anything is written. */
export function assertCanWriteRows(table: LoadedTable, fields = schemaOf(table.metadata).fields): void {
  const { metadata } = table
  assertWritable(metadata)
  const format = metadata.properties['write.format.default'] ?? 'parquet'
  if (format.toLowerCase() !== 'parquet') {
    throw new IcebergError(
      'metadata_unsupported',
      `${tableName(table.identifier)} wants its files as ${format} (write.format.default); only parquet can be written`,
    )
  }
  assertWritableColumns({ fields }, tableName(table.identifier))
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
  const orderBy = orderByOf(order, fields)
  return await writePartitioned(duckdb, table, rows, {
    content: 'data',
    fields,
    modes: metricsModes(schemaOf(metadata), metadata.properties, order),
    specId: metadata.defaultSpecId,
    orderBy,
    sortOrderId: orderBy === '' ? 0 : order.orderId,
    ...options,
  })
}

/** Writes the rows of a select as one data file. */
export async function writeRelation(
  duckdb: DuckDb,
  table: LoadedTable,
  relation: Relation,
): Promise<ContentFile | undefined> {
  assertCanWriteRows(table)
  const { metadata } = table
  const schema = schemaOf(metadata)
  const kind: FileKind = {
    content: 'data',
    fields: schema.fields,
    modes: metricsModes(schema, metadata.properties, sortOrderOf(metadata)),
    specId: relation.specId ?? metadata.defaultSpecId,
    sortOrderId: 0,
  }
  const spec = partitionSpecOf(metadata, kind.specId)
  const partition = relation.partition ?? spec.fields.map(() => null)
  if (partition.length !== spec.fields.length) {
    throw new IcebergError(
      'value_invalid',
      `Partition spec ${spec.specId} has ${spec.fields.length} values, not ${partition.length}`,
    )
  }
  const file = await writeFile(duckdb, table, kind, relation.select, partition)
  if (file.recordCount > 0) return file
  await table.storage.delete([file.filePath])
  return undefined
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
  kind: FileKind & WriteFilesOptions & { readonly orderBy?: string },
): Promise<ContentFile[]> {
  const { fields } = kind
  const { route, partitions } = router(partitionSpecOf(table.metadata, kind.specId), { fields })
  const files: ContentFile[] = []
  return await duckdb.using(async (connection) => {
    await loadRows(connection, 'new_rows', fields, rows, route)
    try {
      for (const [part, partition] of partitions.entries()) {
        const { count } =
          (
            await connection.runAndReadAll(`select count(*)::int as count from new_rows where part = ${part}`)
          ).getRowObjects()[0] ?? {}
        const step = kind.maxRowsPerFile ?? Number(count)
        const columns = fields.map((field, index) => `c${index} as ${sqlName(field.name)}`).join(', ')
        const sorted = `select ${columns} from new_rows where part = ${part} ${kind.orderBy ?? ''}`
        for (let done = 0; done < Number(count); done += step) {
          const limit = step < Number(count) ? ` limit ${step} offset ${done}` : ''
          files.push(await writeFile(connection, table, kind, sorted + limit, partition))
        }
      }
      return files
    } catch (error) {
      await removeFiles(table, files)
      throw error
    }
  })
}

type Connection = Parameters<typeof writeParquetFile>[0]

/** Writes the rows of a select as one file of a partition. */
export async function writeFile(
  on: DuckDb | Connection,
  table: LoadedTable,
  kind: FileKind,
  select: string,
  partition: PartitionValues,
): Promise<ContentFile> {
  const { metadata } = table
  const spec = partitionSpecOf(metadata, kind.specId)
  const types = partitionType(spec, [schemaOf(metadata), ...metadata.schemas.toReversed()])
  const folders = partitionPath(spec, types, partition)
  const filePath = newDataLocation(metadata, folders, kind.content === 'data' ? '.parquet' : '-deletes.parquet')
  const { properties } = metadata
  const write = (connection: Connection, path: string): Promise<FileMetrics> =>
    writeParquetFile(connection, select, path, { fields: kind.fields, modes: kind.modes, properties })
  try {
    const metrics = await storedFile(table, filePath, (path) =>
      'using' in on ? on.using((connection) => write(connection, path)) : write(on, path),
    )
    assertNoNulls(kind.fields, metrics, tableName(table.identifier))
    const { content, specId, equalityIds } = kind
    const sortOrderId = content === 'data' ? kind.sortOrderId : undefined
    return { content, filePath, fileFormat: 'parquet', specId, partition, ...metrics, equalityIds, sortOrderId }
  } catch (error) {
    await removeFiles(table, [filePath])
    throw error
  }
}

/** DuckDB writes where the file is to be, if that is on this machine; else beside, and it is sent from there. */
async function storedFile<T>(table: LoadedTable, location: string, write: (path: string) => Promise<T>): Promise<T> {
  if (parseLocation(location).scheme === 'file') {
    const path = pathOf(location)
    await mkdir(dirname(path), { recursive: true })
    return await write(path)
  }
  const folder = await temporaryFolder('write')
  try {
    const path = join(folder, 'file.parquet')
    const written = await write(path)
    const content = createReadStream(path)
    try {
      await table.storage.write(location, content)
    } finally {
      content.destroy() // it may not have been read to its end
    }
    return written
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** DuckDB makes every column optional, so it is seen here that a required one has no nulls. */
function assertNoNulls(fields: readonly Field[], metrics: FileMetrics, table: string): void {
  for (const field of fields) {
    if (!field.required) continue
    const nulls = metrics.nullValueCounts.get(field.id) ?? 0
    if (nulls > 0 && field.type.type !== 'list' && field.type.type !== 'map') {
      throw new IcebergError(
        'value_invalid',
        `${nulls} rows for ${table} have no value in the required column ${field.name}`,
      )
    }
  }
}

/** The order of rows in a file; empty when the table has none, or one that DuckDB cannot make. */
function orderByOf(order: SortOrder, fields: readonly Field[]): string {
  const terms: string[] = []
  for (const { sourceId, transform, direction, nullOrder } of order.fields) {
    const index = fields.findIndex((field) => field.id === sourceId)
    if (index < 0 || transform.name !== 'identity') return ''
    terms.push(`c${index} ${direction} ${nullOrder === 'nulls-first' ? 'nulls first' : 'nulls last'}`)
  }
  return terms.length === 0 ? '' : `order by ${terms.join(', ')}`
}
