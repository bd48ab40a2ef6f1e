import type { PrimitiveType } from '../schema/type.ts'
import { compareValues } from '../values/compare.ts'
import { truncateString } from '../values/transform.ts'
import type { Value } from '../values/value.ts'
import type { Term } from './filter.ts'

/** What is known of the values of a field in some rows, from a partition or from bounds. */
export interface ValueRange {
  readonly lower?: Value | undefined
  readonly upper?: Value | undefined
  readonly mayBeNull: boolean
  readonly mayBeNan: boolean
  /** Whether there may be a value that is neither null nor NaN. */
  readonly mayBeValue: boolean
  /** Whether all rows have one and the same value, and it is `lower`; bounds alone may be cut short. */
  readonly isExact: boolean
}

/** Whether a row with values in this range may fulfil a condition. Says yes when in doubt. */
export function mayMatch(term: Term, range: ValueRange): boolean {
  const { mayBeNull, mayBeNan, mayBeValue, isExact } = range
  switch (term.op) {
    case 'is null':
      return mayBeNull
    case 'is not null':
      return mayBeValue || mayBeNan
    case 'is nan':
      return mayBeNan
    case 'is not nan':
      return mayBeNull || mayBeValue
    case '=':
    case 'in':
      return mayBeValue && term.values.some((value) => mayBeEqual(term.type, range, value))
    case '!=':
    case 'not in':
      // Rows of one known value can all be excluded; of more, never.
      return !isExact || !mayBeValue || !term.values.some((value) => compare(term.type, range.lower, value) === 0)
    case '<':
    case '<=':
      return mayBeValue && mayBeBelow(term, range)
    case '>':
    case '>=':
      return mayBeNan || (mayBeValue && mayBeAbove(term, range))
    case 'starts with':
      return mayBeValue && mayStartWith(range, String(term.values[0]))
    case 'not starts with':
      return !isExact || !mayBeValue || !String(range.lower).startsWith(String(term.values[0]))
  }
}

function mayBeEqual(type: PrimitiveType, { lower, upper }: ValueRange, value: Value): boolean {
  const [fromLower, fromUpper] = [compare(type, lower, value), compare(type, upper, value)]
  if (fromLower !== undefined && fromLower > 0) return false
  return fromUpper === undefined || fromUpper >= 0
}

function mayBeBelow(term: Term, { lower, upper }: ValueRange): boolean {
  const order = compare(term.type, lower, term.values[0])
  if (order === undefined || (term.op === '<' ? order < 0 : order <= 0)) return true
  return term.orAbove !== undefined && (compare(term.type, upper, term.orAbove) ?? 1) > 0
}

function mayBeAbove(term: Term, { upper }: ValueRange): boolean {
  const order = compare(term.type, upper, term.values[0])
  return order === undefined || (term.op === '>' ? order > 0 : order >= 0)
}

function mayStartWith({ lower, upper }: ValueRange, prefix: string): boolean {
  const length = Array.from(prefix).length
  const cut = (bound: Value | undefined): number | undefined =>
    bound === undefined ? undefined : compareValues({ type: 'string' }, truncateString(String(bound), length), prefix)
  return (cut(lower) ?? 0) <= 0 && (cut(upper) ?? 0) >= 0
}

/** Undefined when nothing is known. Both zeros are equal here, as they are to DuckDB. */
function compare(type: PrimitiveType, bound: Value | undefined, value: Value | undefined): number | undefined {
  if (bound === undefined || value === undefined || Number.isNaN(bound)) return undefined
  if (bound === 0 && value === 0) return 0
  return compareValues(type, bound, value)
}
