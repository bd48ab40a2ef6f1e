import type { Type } from '../schema/type.ts'
import { viewOf } from './bytes.ts'
import type { Value } from './value.ts'

/**
 * The order of two values of one type, as the format has it: texts and uuids by their bytes, -0.0 before 0.0, NaN after
 * everything.
 */
export function compareValues(type: Type, a: Value, b: Value): number {
  if (typeof a === 'string' && typeof b === 'string') {
    // By UTF-8 bytes, which is not the order of JavaScript where surrogates are involved.
    return type.type === 'string' && a !== b ? Buffer.compare(Buffer.from(a), Buffer.from(b)) : order(a, b)
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(viewOf(a), viewOf(b))
  if (typeof a === 'number' && typeof b === 'number') return compareNumbers(a, b)
  return order(a as bigint, b as bigint)
}

function order<T>(a: T, b: T): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function compareNumbers(a: number, b: number): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return order(Number(Number.isNaN(a)), Number(Number.isNaN(b)))
  if (a === 0 && b === 0) return order(Number(Object.is(b, -0)), Number(Object.is(a, -0)))
  return order(a, b)
}
