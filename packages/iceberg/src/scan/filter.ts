import { IcebergError } from '../errors.ts'
import { fieldsById, findField, type Schema } from '../schema/schema.ts'
import { isNested, typeName, type PrimitiveType, type Type } from '../schema/type.ts'
import { valueFromBytes, valueToBytes } from '../values/binary.ts'
import type { Value } from '../values/value.ts'

export type Comparison = '=' | '!=' | '<' | '<=' | '>' | '>='

/**
 * What rows are wanted. A column is named by its dotted path ("place.lat"); values are those of `Value`.
 * There are two truths, not three: a null equals nothing and is neither less nor more, so that `!=`, `not in` and
 * `not starts with` hold for it. NaN is more than everything else.
 */
export type Filter =
  | { readonly op: 'and' | 'or'; readonly filters: readonly Filter[] }
  | { readonly op: 'not'; readonly filter: Filter }
  | { readonly op: Comparison; readonly column: string; readonly value: Value }
  | { readonly op: 'in' | 'not in'; readonly column: string; readonly values: readonly Value[] }
  | { readonly op: 'is null' | 'is not null' | 'is nan' | 'is not nan'; readonly column: string }
  | { readonly op: 'starts with' | 'not starts with'; readonly column: string; readonly value: string }

/** A condition on one field. */
export interface Term {
  readonly op: Comparison | 'in' | 'not in' | NullTest | PrefixTest
  readonly fieldId: number
  readonly type: PrimitiveType
  /** One for a comparison and a prefix, none for the tests of null and NaN. */
  readonly values: readonly Value[]
  /** Of "less" on a partition: what is above this counts as well, see `projectTerm`. */
  readonly orAbove?: Value
}

type NullTest = 'is null' | 'is not null' | 'is nan' | 'is not nan'
type PrefixTest = 'starts with' | 'not starts with'

/** A filter with its columns found and without `not`. No filters: "and" is true, "or" is false. */
export type BoundFilter =
  { readonly op: 'and' | 'or'; readonly filters: readonly BoundFilter[] } | { readonly op: 'term'; readonly term: Term }

const opposites: Readonly<Record<Term['op'], Term['op']>> = {
  '=': '!=',
  '!=': '=',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
  in: 'not in',
  'not in': 'in',
  'is null': 'is not null',
  'is not null': 'is null',
  'is nan': 'is not nan',
  'is not nan': 'is nan',
  'starts with': 'not starts with',
  'not starts with': 'starts with',
}

/** Finds the columns of a filter, checks its values against them, and moves every `not` into the conditions. */
export function bindFilter(filter: Filter, schema: Schema): BoundFilter {
  return bind(filter, schema, false)
}

function bind(filter: Filter, schema: Schema, negated: boolean): BoundFilter {
  switch (filter.op) {
    case 'not':
      return bind(filter.filter, schema, !negated)
    case 'and':
    case 'or': {
      const other = filter.op === 'and' ? 'or' : 'and'
      return { op: negated ? other : filter.op, filters: filter.filters.map((f) => bind(f, schema, negated)) }
    }
    default: {
      const term = boundTerm(filter, schema)
      return negated ? negatedTerm(term) : { op: 'term', term }
    }
  }
}

/** The opposite of "less" is "not less", which a null is too. */
function negatedTerm(term: Term): BoundFilter {
  const opposite: BoundFilter = { op: 'term', term: { ...term, op: opposites[term.op] } }
  const comparesOrder = term.op.startsWith('<') || term.op.startsWith('>')
  if (!comparesOrder) return opposite
  return { op: 'or', filters: [opposite, { op: 'term', term: { ...term, op: 'is null', values: [] } }] }
}

function boundTerm(filter: Extract<Filter, { column: string }>, schema: Schema): Term {
  const field = findField(schema, filter.column)
  if (field === undefined) throw wrong(filter.column, 'there is no such column')
  if (isInside(schema, field.parentId)) throw wrong(filter.column, 'it is inside a list or map')
  const { type } = field
  if (isNested(type)) throw wrong(filter.column, `it is a ${type.type}, and only single values are compared`)
  const values = 'values' in filter ? filter.values : 'value' in filter ? [filter.value] : []
  if (filter.op.endsWith('starts with') && type.type !== 'string') {
    throw wrong(filter.column, `it is ${typeName(type)}, and only a string has a beginning`)
  }
  return { op: filter.op, fieldId: field.id, type, values: values.map((value) => literal(filter.column, type, value)) }
}

/** Whether a field has a list or map above it. */
function isInside(schema: Schema, parentId: number | undefined): boolean {
  const byId = fieldsById(schema)
  for (let at = parentId; at !== undefined; at = byId.get(at)?.parentId) {
    if (byId.get(at)?.type.type !== 'struct') return true
  }
  return false
}

const withoutOrder = new Set<Type['type']>(['variant', 'geometry', 'geography'])

/** The value as columns of the type have it, in which it is compared with bounds, partitions and rows alike. */
function literal(column: string, type: PrimitiveType, value: Value): Value {
  if (Number.isNaN(value)) throw wrong(column, 'nothing is compared with NaN: use "is nan"')
  if (withoutOrder.has(type.type)) throw wrong(column, `values of its type, ${typeName(type)}, are not compared`)
  try {
    // A float has fewer digits than a number, and a uuid may be spelled in capitals.
    const held = valueFromBytes(type, valueToBytes(type, value))
    if (isHeld(type, value, held)) return held
  } catch (error) {
    throw wrong(column, `${String(value)} is not a value of its type, ${typeName(type)}`, error)
  }
  throw wrong(column, `${String(value)} is not in the range of its type, ${typeName(type)}`)
}

function isHeld(type: PrimitiveType, value: Value, held: Value): boolean {
  if (type.type === 'decimal') return String(held).replace('-', '').length <= type.precision
  if (type.type === 'fixed') return (held as Uint8Array).length === type.length
  return Number.isFinite(held) === Number.isFinite(value)
}

function wrong(column: string, why: string, cause?: unknown): IcebergError {
  return new IcebergError('scan_invalid', `A filter cannot use the column ${column}: ${why}.`, {
    details: { column },
    ...(cause === undefined ? {} : { cause }),
  })
}

/** The ids of the fields that a filter looks at. */
export function filteredFields(filter: BoundFilter): Set<number> {
  if (filter.op === 'term') return new Set([filter.term.fieldId])
  return new Set(filter.filters.flatMap((inner) => [...filteredFields(inner)]))
}
