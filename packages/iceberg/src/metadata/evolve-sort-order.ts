import { IcebergError } from '../errors.ts'
import type { Transform } from '../schema/partition-spec.ts'
import { findField } from '../schema/schema.ts'
import type { SortField } from '../schema/sort-order.ts'
import { schemaOf, type TableMetadata } from './table-metadata.ts'
import type { MetadataUpdate } from './update.ts'

export interface SortColumn {
  readonly column: string
  /** Default: identity. */
  readonly transform?: Transform
  /** Default: asc. */
  readonly direction?: 'asc' | 'desc'
  /** Default: first for asc, last for desc. */
  readonly nullOrder?: 'nulls-first' | 'nulls-last'
}

/** The updates that make new data be sorted by these columns; none of them: unsorted. */
export function sortOrderUpdates(metadata: TableMetadata, columns: readonly SortColumn[]): MetadataUpdate[] {
  const fields = columns.map((column): SortField => {
    const source = findField(schemaOf(metadata), column.column)
    if (source === undefined) {
      throw new IcebergError(
        'schema_change_invalid',
        `The table cannot be sorted: there is no column "${column.column}"`,
      )
    }
    const direction = column.direction ?? 'asc'
    return {
      sourceId: source.id,
      transform: column.transform ?? { name: 'identity' },
      direction,
      nullOrder: column.nullOrder ?? (direction === 'asc' ? 'nulls-first' : 'nulls-last'),
    }
  })
  return [
    { action: 'add-sort-order', sortOrder: { orderId: fields.length === 0 ? 0 : 1, fields } },
    { action: 'set-default-sort-order', sortOrderId: -1 },
  ]
}
