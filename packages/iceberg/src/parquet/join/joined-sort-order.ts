import type { ContentFile } from '../../manifests/content-file.ts'
import type { SchemaField } from '../../schema/schema.ts'
import type { SortOrder } from '../../schema/sort-order.ts'
import { isNested, type PrimitiveType } from '../../schema/type.ts'
import { boundValue, compareBounds } from './merged-metrics.ts'

const unsorted = 0

/**
 * The sort order of files that are joined in this order: their own if all are sorted alike and each ends before the next
 * begins, as far as their bounds tell; else none.
 */
export function joinedSortOrder(
  files: readonly ContentFile[],
  orders: readonly SortOrder[],
  fields: ReadonlyMap<number, SchemaField>,
): number {
  const id = files[0]?.sortOrderId ?? unsorted
  const order = orders.find(({ orderId }) => orderId === id)
  const first = order?.fields[0]
  const type = fields.get(first?.sourceId ?? -1)?.type
  if (id === unsorted || order === undefined || first === undefined || type === undefined) return unsorted
  if (files.some(({ sortOrderId }) => sortOrderId !== id)) return unsorted
  if (files.length === 1) return id
  // Only bounds are known: where they touch, the columns after the first would decide.
  if (first.transform.name !== 'identity' || isNested(type)) return unsorted
  const isFloat = type.type === 'float' || type.type === 'double'
  const mayTouch = order.fields.length === 1
  const ranges = files.map((file) => {
    const [lower, upper] = [file.lowerBounds?.get(first.sourceId), file.upperBounds?.get(first.sourceId)]
    // Bounds say nothing of nulls and NaN, which have a place in the order too.
    const mayHaveNan = isFloat && file.nanValueCounts?.get(first.sourceId) !== 0
    const isWhole = file.nullValueCounts?.get(first.sourceId) === 0 && !mayHaveNan
    return isWhole && isBound(type, lower) && isBound(type, upper) ? { lower, upper } : undefined
  })
  const inOrder = first.direction === 'asc' ? ranges : ranges.toReversed()
  for (const [index, range] of inOrder.entries()) {
    const next = inOrder[index + 1]
    if (range === undefined) return unsorted
    if (next === undefined) continue
    const compared = compareBounds(type, range.upper, next.lower)
    if (compared > 0 || (compared === 0 && !mayTouch)) return unsorted
  }
  return id
}

function isBound(type: PrimitiveType, bound: Uint8Array | undefined): bound is Uint8Array {
  return bound !== undefined && boundValue(type, bound) !== undefined
}
