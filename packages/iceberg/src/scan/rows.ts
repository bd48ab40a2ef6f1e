import { IcebergError } from '../errors.ts'
import { fieldsById, type Schema } from '../schema/schema.ts'
import type { Field } from '../schema/type.ts'
import { explained, streamRows } from '../parquet/duckdb.ts'
import type { AppliedDeletes } from '../snapshot/delete.ts'
import { mapOrdered } from '../storage/ordered.ts'
import { filteredFields } from './filter.ts'
import { metadataColumns, type MetadataColumn } from './metadata-columns.ts'
import { planContext, planWith, type PlanContext, type PlanOptions, type ScanFile } from './plan.ts'
import type { ScannedTable } from '../snapshot/manifests-of.ts'
import { assertReadable } from './projection.ts'
import { valueReader, type ScannedRow } from './row-value.ts'
import { TableReader, type PreparedFile, type ReaderOptions, type Selection } from './table-reader.ts'

/** Files that are brought here while the rows of another are read. */
const preparedAhead = 4

export interface ScanOptions extends PlanOptions, ReaderOptions {
  /** Names of the columns that are wanted, in this order. Default: all. */
  readonly columns?: readonly string[]
  /** What is wanted besides; it comes after the columns. Default: nothing. */
  readonly metadataColumns?: readonly MetadataColumn[]
}

/**
 * The live rows of a table, or of one of its snapshots, branches and tags, in batches and in no order. Columns that
 * cannot be read exactly are refused before the first row.
 */
export async function* scanRows(table: ScannedTable, options: ScanOptions = {}): AsyncGenerator<ScannedRow[]> {
  options.signal?.throwIfAborted()
  const context = planContext(table.metadata, options)
  const fields = scannedFields(context.schema, options.columns)
  assertReadable([...fields, ...filteredColumns(context)], table.metadata.location)
  if (context.snapshot === undefined) return
  const selection = { fields, metadataColumns: options.metadataColumns ?? [], filter: context.filter }
  const reader = await TableReader.open(table, context, options)
  try {
    for await (const files of planWith(table, options, context)) {
      for await (const { file, prepared } of preparedFiles(reader, files)) {
        let isRead = false
        try {
          yield* fileRows(reader, file, prepared, selection, options.signal)
          isRead = true
        } finally {
          if (!isRead) reader.stopPreparing()
        }
      }
    }
  } catch (error) {
    // What DuckDB says when it is interrupted is not the reason.
    options.signal?.throwIfAborted()
    throw error
  } finally {
    await reader.close()
  }
}

/** Those of the columns of a schema that are named, in the order of the names. */
function scannedFields(schema: Schema, names: readonly string[] | undefined): readonly Field[] {
  if (names === undefined) return schema.fields
  return names.map((name) => {
    const found = schema.fields.find((field) => field.name === name)
    if (found === undefined) throw new IcebergError('scan_invalid', `The table has no column ${name} to scan.`)
    return found
  })
}

/** The fields that the filter looks at, at any depth. */
function filteredColumns({ schema, filter }: PlanContext): Field[] {
  if (filter === undefined) return []
  const fields = fieldsById(schema)
  return [...filteredFields(filter)].flatMap((id) => fields.get(id) ?? [])
}

/** The next files are brought here while the rows of one are read, up to the next that has files of deletes. */
async function* preparedFiles(
  reader: TableReader,
  files: readonly ScanFile[],
): AsyncGenerator<{ file: ScanFile; prepared: PreparedFile }> {
  const prepare = async (file: ScanFile) => ({ file, prepared: await reader.prepare(file) })
  for (let at = 0; at < files.length;) {
    const found = files.findIndex(({ deletes }, index) => index >= at && hasDeleteFiles(deletes))
    const end = found === -1 ? files.length : found
    yield* mapOrdered(files.slice(at, end), preparedAhead, prepare)
    const file = files[end]
    if (file !== undefined) yield { file, prepared: {} }
    at = end + 1
  }
}

function hasDeleteFiles({ positions, equality }: AppliedDeletes): boolean {
  return positions.length + equality.length > 0
}

async function* fileRows(
  reader: TableReader,
  file: ScanFile,
  prepared: PreparedFile,
  selection: Selection,
  signal: AbortSignal | undefined,
): AsyncGenerator<ScannedRow[]> {
  const selected = await reader.select(file, selection, prepared)
  try {
    const columns = [...selection.fields, ...selection.metadataColumns.map((name) => metadataColumns[name])]
    const readers = columns.map(({ name, type }) => ({ name, read: valueReader(type) }))
    signal?.throwIfAborted()
    const result = await streamRows(reader.connection, selected.sql)
    for (;;) {
      signal?.throwIfAborted()
      const chunk = await explained(result.fetchChunk())
      if (chunk === null || chunk.rowCount === 0) return
      const values = chunk.getColumns()
      yield Array.from({ length: chunk.rowCount }, (_, row) =>
        Object.fromEntries(readers.map(({ name, read }, at) => [name, read(values[at]?.[row] ?? null)])),
      )
    }
  } finally {
    await selected.release()
  }
}
