import { IcebergError } from '../errors.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compact, ObjectReader } from '../json/object-reader.ts'
import { transformText } from './partition-spec.ts'
import { sourceFromJson, sourceToJson } from './partition-spec-json.ts'
import type { SortField, SortOrder } from './sort-order.ts'

export function sortOrderFromJson(json: Json | undefined, what = 'sort order'): SortOrder {
  const r = new ObjectReader(json, what)
  return { orderId: r.int('order-id'), fields: r.array('fields', sortFieldFromJson), ...r.unknown() }
}

function sortFieldFromJson(json: Json, what: string): SortField {
  const r = new ObjectReader(json, what)
  const direction = r.string('direction').toLowerCase()
  const nullOrder = r.string('null-order').toLowerCase()
  if (direction !== 'asc' && direction !== 'desc') {
    throw new IcebergError('metadata_invalid', `${what}: the direction "${direction}" is neither asc nor desc`)
  }
  if (nullOrder !== 'nulls-first' && nullOrder !== 'nulls-last') {
    throw new IcebergError('metadata_invalid', `${what}: "${nullOrder}" is neither nulls-first nor nulls-last`)
  }
  return { ...sourceFromJson(r), direction, nullOrder, ...r.unknown() }
}

export function sortOrderToJson(order: SortOrder): JsonObject {
  const fields = order.fields.map((field) =>
    compact({
      transform: transformText(field.transform),
      ...sourceToJson(field),
      direction: field.direction,
      'null-order': field.nullOrder,
      ...field.unknownKeys,
    }),
  )
  return compact({ 'order-id': order.orderId, fields, ...order.unknownKeys })
}
