import { sqlText } from '../parquet/duckdb.ts'
import type { ParquetColumn } from '../parquet/parquet-column.ts'
import type { Field } from '../schema/type.ts'
import type { ScanFile } from './plan.ts'

/** What is known of every row besides its columns. The last two are the row lineage of v3, null before. */
export const metadataColumns = {
  _file: { id: 2147483646, name: '_file', required: true, type: { type: 'string' } },
  _pos: { id: 2147483645, name: '_pos', required: true, type: { type: 'long' } },
  _row_id: { id: 2147483540, name: '_row_id', required: false, type: { type: 'long' } },
  _last_updated_sequence_number: {
    id: 2147483539,
    name: '_last_updated_sequence_number',
    required: false,
    type: { type: 'long' },
  },
} as const satisfies Record<string, Field>

export type MetadataColumn = keyof typeof metadataColumns

/** The same for files that are read together, of which the table `g` says path, seq and first_row_id. */
export function groupLineageSql(name: MetadataColumn, columns: readonly ParquetColumn[]): string {
  const stored = columns.findIndex((column) => column.fieldId === metadataColumns[name].id)
  const kept = stored === -1 ? 'null' : `p${stored}`
  switch (name) {
    case '_file':
      return 'g.path'
    case '_pos':
      return 'file_row_number'
    case '_row_id':
      return `case when g.first_row_id is not null then coalesce(${kept}, g.first_row_id + file_row_number) end`
    case '_last_updated_sequence_number':
      return `case when g.first_row_id is not null then coalesce(${kept}, g.seq) end`
  }
}

/** A metadata column as an expression of SQL. Lineage that a file has in itself is kept; the rest follows from its place. */
export function lineageSql(name: MetadataColumn, scanned: ScanFile, columns: readonly ParquetColumn[]): string {
  const { file, sequenceNumber } = scanned
  const stored = columns.findIndex((column) => column.fieldId === metadataColumns[name].id)
  const kept = stored === -1 ? 'null' : `p${stored}`
  switch (name) {
    case '_file':
      return sqlText(file.filePath)
    case '_pos':
      return 'file_row_number'
    case '_row_id':
      if (file.firstRowId === undefined) return 'cast(null as bigint)'
      return `coalesce(${kept}, ${file.firstRowId}::bigint + file_row_number)`
    case '_last_updated_sequence_number':
      if (file.firstRowId === undefined) return 'cast(null as bigint)'
      return `coalesce(${kept}, ${sequenceNumber}::bigint)`
  }
}
