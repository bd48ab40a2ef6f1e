import type { Transform } from '../schema/partition-spec.ts'
import type { PrimitiveType } from '../schema/type.ts'
import { compareValues } from '../values/compare.ts'
import { applyTransform, transformedType, truncateString } from '../values/transform.ts'
import type { Value } from '../values/value.ts'
import type { Term } from './filter.ts'

// The inclusive projection: what must hold of a partition value for a row of the partition to possibly fulfil the
// condition. Undefined: any partition may have such rows.

const dateTransforms = new Set<Transform['name']>(['year', 'month', 'day', 'hour'])

/** The condition on a partition field that follows from a condition on its source column. */
export function projectTerm(term: Term, transform: Transform): Term | undefined {
  const type = transformedType(transform, term.type)
  if (type === undefined || transform.name === 'void' || transform.name === 'unknown') return undefined
  if (transform.name === 'identity') return term
  switch (term.op) {
    case 'is null':
    case 'is not null':
      return { ...term, type }
    case '=':
    case 'in':
      return equal(term, transform, type)
    case '<':
    case '<=':
    case '>':
    case '>=':
      return transform.name === 'bucket' ? undefined : ordered(term, transform, type)
    case 'starts with':
      return transform.name === 'truncate' ? prefixed(term, transform) : undefined
    default:
      return undefined
  }
}

function equal(term: Term, transform: Transform, type: PrimitiveType): Term | undefined {
  const values = term.values.map((value) => transformed(transform, term.type, value))
  if (values.includes(undefined)) return undefined
  return { ...term, type, op: 'in', values: (values as Value[]).flatMap((value) => withNeighbour(transform, value)) }
}

// Old writers rounded times before 1970 towards zero: what belongs to -1 is found at 0.
function withNeighbour(transform: Transform, value: Value): Value[] {
  const isBefore1970 = dateTransforms.has(transform.name) && typeof value === 'number' && value < 0
  return isBefore1970 ? [value, value + 1] : [value]
}

function ordered(term: Term, transform: Transform, type: PrimitiveType): Term | undefined {
  const [value] = term.values
  const bound = value === undefined ? undefined : transformed(transform, term.type, value)
  if (bound === undefined) return undefined
  if (term.op.startsWith('>')) return { ...term, type, op: '>=', values: [bound] }
  const atMost: Term = { ...term, type, op: '<=', values: withNeighbour(transform, bound).slice(-1) }
  const highest = highestOf(type)
  if (transform.name !== 'truncate' || highest === undefined) return atMost
  // The lowest numbers of a type are truncated below its range, which brings them to its upper end.
  return { ...atMost, orAbove: highest(transform.width) }
}

function highestOf(type: PrimitiveType): ((less: number) => Value) | undefined {
  if (type.type === 'int') return (less) => 2 ** 31 - 1 - less
  return type.type === 'long' ? (less) => 2n ** 63n - 1n - BigInt(less) : undefined
}

/** Undefined where truncation has left the range of the type and begun again at its other end. */
function transformed(transform: Transform, source: PrimitiveType, value: Value): Value | undefined {
  const result = applyTransform(transform, source, value)
  if (result === null) return undefined
  const wrapped = transform.name === 'truncate' && source.type !== 'string' && compareValues(source, result, value) > 0
  return wrapped ? undefined : result
}

function prefixed(term: Term, { width }: Extract<Transform, { name: 'truncate' }>): Term {
  const prefix = String(term.values[0])
  const cut = truncateString(prefix, width)
  return cut === prefix ? term : { ...term, op: '=', values: [cut] }
}
