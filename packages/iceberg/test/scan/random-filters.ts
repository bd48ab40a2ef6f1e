import fc from 'fast-check'
import type { Comparison, Field, Filter, Value } from '../../src/index.ts'

// Filters that fit any columns, and what they mean, said once more without any code of the scan.

type Condition = Extract<Filter, { column: string }>['op']

/** A filter whose columns and values are still numbers, to be looked up when the columns are known. */
export type FilterShape =
  | { readonly op: number; readonly column: number; readonly value: number; readonly length: number }
  | { readonly join: 'and' | 'or'; readonly left: FilterShape; readonly right: FilterShape }
  | { readonly not: FilterShape }

/** A column with values to compare it with. */
export interface FilteredColumn {
  readonly name: string
  readonly type: Field['type']
  readonly values: readonly Value[]
}

export const filterShape = fc.letrec<{ shape: FilterShape }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 2 },
    { weight: 4, arbitrary: fc.record({ op: fc.nat(99), column: fc.nat(99), value: fc.nat(99), length: fc.nat(3) }) },
    {
      weight: 2,
      arbitrary: fc.record({ join: fc.constantFrom('and', 'or'), left: tie('shape'), right: tie('shape') }),
    },
    { weight: 1, arbitrary: fc.record({ not: tie('shape') }) },
  ),
})).shape

const comparisons: readonly Comparison[] = ['=', '!=', '<', '<=', '>', '>=']

/** The filter that a shape stands for, among these columns. */
export function filterOf(shape: FilterShape, columns: readonly FilteredColumn[]): Filter {
  if ('join' in shape) {
    return { op: shape.join, filters: [filterOf(shape.left, columns), filterOf(shape.right, columns)] }
  }
  if ('not' in shape) return { op: 'not', filter: filterOf(shape.not, columns) }
  const { name: column, type, values } = at(columns, shape.column)
  const candidates = values.filter((value) => !Number.isNaN(value))
  const op = at(opsFor(type, candidates.length > 0), shape.op)
  const value = candidates.length === 0 ? 0 : at(candidates, shape.value)
  switch (op) {
    case 'is null':
    case 'is not null':
    case 'is nan':
    case 'is not nan':
      return { op, column }
    case 'in':
    case 'not in':
      return { op, column, values: [value, at(candidates, shape.value + shape.length)] }
    case 'starts with':
    case 'not starts with':
      return { op, column, value: Array.from(String(value)).slice(0, shape.length).join('') }
    case '=':
    case '!=':
    case '<':
    case '<=':
    case '>':
    case '>=':
      return { op, column, value }
  }
}

function opsFor(type: Field['type'], hasValues: boolean): Condition[] {
  const isFloat = type.type === 'float' || type.type === 'double'
  const tests: Condition[] = ['is null', 'is not null', ...(isFloat ? (['is nan', 'is not nan'] as const) : [])]
  if (!hasValues) return tests
  const prefixes = type.type === 'string' ? (['starts with', 'not starts with'] as const) : []
  return [...tests, ...comparisons, 'in', 'not in', ...prefixes]
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index % items.length]
  if (item === undefined) throw new Error('there is nothing to choose from')
  return item
}

/** Whether a row fulfils a filter. */
export function fulfils(filter: Filter, row: Readonly<Record<string, unknown>>): boolean {
  if ('filters' in filter) {
    const met = filter.filters.map((inner) => fulfils(inner, row))
    return filter.op === 'and' ? !met.includes(false) : met.includes(true)
  }
  if (filter.op === 'not') return !fulfils(filter.filter, row)
  return holds(filter, (row[filter.column] ?? null) as Value | null)
}

function holds(filter: Extract<Filter, { column: string }>, value: Value | null): boolean {
  const equals = (other: Value): boolean => value !== null && order(value, other) === 0
  switch (filter.op) {
    case 'is null':
      return value === null
    case 'is not null':
      return value !== null
    case 'is nan':
      return Number.isNaN(value)
    case 'is not nan':
      return !Number.isNaN(value)
    case 'in':
      return filter.values.some(equals)
    case 'not in':
      return !filter.values.some(equals)
    case 'starts with':
      return value !== null && String(value).startsWith(filter.value)
    case 'not starts with':
      return value === null || !String(value).startsWith(filter.value)
    case '=':
      return equals(filter.value)
    case '!=':
      return !equals(filter.value)
    case '<':
      return value !== null && order(value, filter.value) < 0
    case '<=':
      return value !== null && order(value, filter.value) <= 0
    case '>':
      return value !== null && order(value, filter.value) > 0
    case '>=':
      return value !== null && order(value, filter.value) >= 0
  }
}

/** NaN after everything, both zeros alike, texts by their bytes. */
function order(a: Value, b: Value): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b)
  if (Number.isNaN(a)) return Number.isNaN(b) ? 0 : 1
  return a < b ? -1 : a > b ? 1 : 0
}
