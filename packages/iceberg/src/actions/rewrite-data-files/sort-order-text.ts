import { IcebergError } from '../../errors.ts'
import { parseTransform } from '../../schema/partition-spec-json.ts'
import type { Transform } from '../../schema/partition-spec.ts'
import { findField, type SchemaField } from '../../schema/schema.ts'
import type { SortField } from '../../schema/sort-order.ts'
import { schemaOf, sortOrderOf, type TableMetadata } from '../../metadata/table-metadata.ts'
import { isNested } from '../../schema/type.ts'

/** What rows are to be sorted by: terms of a sort order, or columns whose bits are interleaved. */
export type RequestedOrder =
  | { readonly kind: 'sort'; readonly fields: readonly SortField[]; readonly orderId: number }
  | { readonly kind: 'zorder'; readonly columns: readonly number[] }

/** Reads an order as Spark's procedure takes it; without a text it is the table's own. */
export function parseSortOrder(metadata: TableMetadata, text: string | undefined): RequestedOrder {
  if (text === undefined) {
    const { fields, orderId } = sortOrderOf(metadata)
    if (fields.length === 0) {
      throw invalid(`The table at ${metadata.location} has no sort order of its own: say by which columns to sort.`)
    }
    return { kind: 'sort', fields, orderId }
  }
  const terms = split(text)
  const zorder = terms.map((term) => /^zorder\s*\((.*)\)$/is.exec(term)?.[1])
  if (zorder.every((inner) => inner === undefined)) {
    const fields = terms.map((term) => sortField(metadata, term))
    return { kind: 'sort', fields, orderId: knownOrder(metadata, fields) }
  }
  const [columns] = zorder
  if (terms.length !== 1 || columns === undefined) {
    throw invalid(`"${text}" mixes a z-order with other terms: give one zorder(…) and nothing else.`)
  }
  return { kind: 'zorder', columns: split(columns).map((name) => columnOf(metadata, name).id) }
}

/** Parts between commas that are not inside of parentheses. */
function split(text: string): string[] {
  const parts: string[] = []
  let depth = 0
  let since = 0
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at]
    if (char === '(') depth += 1
    if (char === ')') depth -= 1
    if (char !== ',' || depth > 0) continue
    parts.push(text.slice(since, at).trim())
    since = at + 1
  }
  parts.push(text.slice(since).trim())
  if (parts.every((part) => part !== '')) return parts
  throw invalid(`"${text}" is not a list of columns.`)
}

function sortField(metadata: TableMetadata, term: string): SortField {
  const match = /^(.+?)(?:\s+(asc|desc))?(?:\s+nulls\s+(first|last))?$/is.exec(term)
  const direction = match?.[2]?.toLowerCase() === 'desc' ? 'desc' : 'asc'
  const nulls = match?.[3]?.toLowerCase() ?? (direction === 'asc' ? 'first' : 'last')
  const { column, transform } = transformOf(match?.[1] ?? term)
  return {
    sourceId: columnOf(metadata, column).id,
    transform,
    direction,
    nullOrder: nulls === 'first' ? 'nulls-first' : 'nulls-last',
  }
}

/** `day(at)`, `bucket(16, id)`, `truncate(4, s)` and `truncate(s, 4)`, or a column. */
function transformOf(text: string): { column: string; transform: Transform } {
  const call = /^(\w+)\s*\((.*)\)$/s.exec(text)
  if (call === null) return { column: text, transform: { name: 'identity' } }
  const [, name = '', inner = ''] = call
  const given = split(inner)
  const width = given.find((each) => /^\d+$/.test(each))
  const columns = given.filter((each) => each !== width)
  const singular = name.toLowerCase().replace(/^(year|month|day|hour)s$/, '$1')
  const transform = parseTransform(width === undefined ? singular : `${singular}[${width}]`)
  if (columns.length !== 1 || columns[0] === undefined || transform.name === 'unknown') {
    throw invalid(`"${text}" is not a column, nor a transform of one.`)
  }
  return { column: columns[0], transform }
}

function columnOf(metadata: TableMetadata, name: string): SchemaField {
  const plain = name.replaceAll(/^`|`$/g, '').replaceAll('`.`', '.')
  const field = findField(schemaOf(metadata), plain)
  if (field === undefined) throw invalid(`The table at ${metadata.location} has no column "${plain}" to sort by.`)
  if (isNested(field.type)) throw invalid(`Column "${plain}" is a ${field.type.type}, and rows cannot be sorted by it.`)
  return field
}

/** The id of the same order, when the table has one; 0, unsorted, otherwise. */
function knownOrder({ sortOrders }: TableMetadata, fields: readonly SortField[]): number {
  const key = (list: readonly SortField[]): string =>
    JSON.stringify(list.map((f) => [f.sourceId, f.transform, f.direction, f.nullOrder]))
  return sortOrders.find((order) => key(order.fields) === key(fields))?.orderId ?? 0
}

function invalid(message: string): IcebergError {
  return new IcebergError('action_refused', message)
}
