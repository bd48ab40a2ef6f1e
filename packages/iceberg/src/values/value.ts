import { IcebergError } from '../errors.ts'
import { type Type, typeName } from '../schema/type.ts'

/**
 * One value of a primitive type, as bounds, partitions and transforms have it.
 * boolean: boolean · int, date (days): number · long, time (µs), timestamp (µs or ns): bigint · float, double: number ·
 * decimal: bigint, unscaled · string: string · uuid: string, lower case with dashes · fixed, binary: Uint8Array.
 */
export type Value = boolean | number | bigint | string | Uint8Array

export function wrongValue(type: Type, value: unknown): IcebergError {
  const kind = value instanceof Uint8Array ? 'bytes' : `a ${typeof value}`
  return new IcebergError('value_invalid', `A value of type ${typeName(type)} cannot be ${kind}`)
}

export function asNumber(type: Type, value: Value): number {
  if (typeof value !== 'number') throw wrongValue(type, value)
  return value
}

export function asInteger(type: Type, value: Value): number {
  if (!Number.isInteger(value)) throw wrongValue(type, value)
  return value as number
}

export function asBigint(type: Type, value: Value): bigint {
  if (typeof value !== 'bigint') throw wrongValue(type, value)
  return value
}

export function asString(type: Type, value: Value): string {
  if (typeof value !== 'string') throw wrongValue(type, value)
  return value
}

export function asBytes(type: Type, value: Value): Uint8Array {
  if (!(value instanceof Uint8Array)) throw wrongValue(type, value)
  return value
}
