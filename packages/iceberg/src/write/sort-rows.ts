import type { SortOrder } from '../schema/sort-order.ts'
import type { Field } from '../schema/type.ts'
import { newRows, type RowKey } from '../parquet/load-rows.ts'
import { applyTransform, transformedType } from '../values/transform.ts'
import { columnReader } from './route-rows.ts'

/** How the rows of a file are ordered. */
export interface RowSort {
  /** What rows are sorted by that is not a column of theirs. */
  readonly keys: readonly RowKey[]
  /** Of the table that `loadRows` makes; empty: the rows stay as they come. */
  readonly orderBy: string
  readonly sortOrderId: number
}

/**
 * The order that a table wants. Rows are sorted by the results of its transforms, made here and not by DuckDB, so that
 * they are those of partitions. Rows are left as they come by an order with a transform that is not known.
 */
export function rowSort(order: SortOrder, fields: readonly Field[]): RowSort {
  const keys: RowKey[] = []
  const terms: string[] = []
  for (const { sourceId, transform, direction, nullOrder } of order.fields) {
    // Nulls only: everything is in order.
    if (transform.name === 'void') continue
    const source = columnReader({ fields }, sourceId)
    const type = source === undefined ? undefined : transformedType(transform, source.type)
    if (source === undefined || type === undefined || transform.name === 'unknown') {
      return { keys: [], orderBy: '', sortOrderId: 0 }
    }
    const column = transform.name === 'identity' ? fields.findIndex((field) => field.id === sourceId) : -1
    if (column < 0) keys.push({ type, of: (row) => applyTransform(transform, source.type, source.read(row)) })
    const nulls = nullOrder === 'nulls-first' ? 'nulls first' : 'nulls last'
    const name = column < 0 ? `k${keys.length - 1}` : `c${column}`
    terms.push(`${newRows}.${name} ${direction} ${nulls}`)
  }
  return { keys, orderBy: terms.length === 0 ? '' : `order by ${terms.join(', ')}`, sortOrderId: order.orderId }
}
