import { IcebergError } from '../errors.ts'
import { type Transform, transformText } from '../schema/partition-spec.ts'
import { isNested, type PrimitiveType, type Type, typeName } from '../schema/type.ts'
import { valueToBytes } from './binary.ts'
import { civilDate } from './date-time.ts'
import { murmur3 } from './murmur3.ts'
import { asBigint, asBytes, asNumber, asString, type Value } from './value.ts'

const timestamps = new Set<Type['type']>(['timestamp', 'timestamptz', 'timestamp_ns', 'timestamptz_ns'])
const bucketable = new Set<Type['type']>([
  ...timestamps,
  'int',
  'long',
  'decimal',
  'date',
  'time',
  'string',
  'uuid',
  'fixed',
  'binary',
])
const truncatable = new Set<Type['type']>(['int', 'long', 'decimal', 'string', 'binary'])
const withoutIdentity = new Set<Type['type']>(['variant', 'geometry', 'geography', 'unknown'])

/** The type of a transform's result, or undefined when the transform cannot be applied to the source type. */
export function transformedType(transform: Transform, source: Type): PrimitiveType | undefined {
  if (isNested(source)) return undefined
  switch (transform.name) {
    case 'identity':
      return withoutIdentity.has(source.type) ? undefined : source
    case 'void':
      return source
    case 'bucket':
      return bucketable.has(source.type) ? { type: 'int' } : undefined
    case 'truncate':
      return truncatable.has(source.type) ? source : undefined
    case 'year':
    case 'month':
      return timestamps.has(source.type) || source.type === 'date' ? { type: 'int' } : undefined
    case 'day':
      return timestamps.has(source.type) || source.type === 'date' ? { type: 'date' } : undefined
    case 'hour':
      return timestamps.has(source.type) ? { type: 'int' } : undefined
    case 'unknown':
      return { type: 'string' }
  }
}

/** The partition value of a source value. Null stays null, and void makes everything null. */
export function applyTransform(transform: Transform, source: Type, value: Value | null): Value | null {
  if (transform.name === 'unknown') {
    throw new IcebergError('metadata_unsupported', `The transform ${transformText(transform)} is not known`)
  }
  if (transformedType(transform, source) === undefined) {
    throw new IcebergError(
      'value_invalid',
      `The transform ${transformText(transform)} cannot be applied to ${typeName(source)}`,
    )
  }
  if (value === null || transform.name === 'void') return null
  switch (transform.name) {
    case 'identity':
      return value
    case 'bucket':
      return (bucketHash(source, value) & 0x7fffffff) % transform.buckets
    case 'truncate':
      return truncate(source, value, transform.width)
    case 'year':
      return monthsSinceEpoch(epochDays(source, value)).years
    case 'month':
      return monthsSinceEpoch(epochDays(source, value)).months
    case 'day':
      return epochDays(source, value)
    case 'hour':
      return Number(floorDivide(micros(source, value), 3_600_000_000n))
  }
}

/** The hash that buckets are made of, before it is cut to the number of buckets. */
export function bucketHash(type: Type, value: Value): number {
  switch (type.type) {
    case 'int':
    case 'date':
      // As a long, so that widening the column moves no row to another bucket.
      return murmur3(valueToBytes({ type: 'long' }, BigInt(asNumber(type, value))))
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return murmur3(valueToBytes({ type: 'long' }, micros(type, value)))
    default:
      return murmur3(valueToBytes(type, value))
  }
}

function truncate(type: Type, value: Value, width: number): Value {
  switch (type.type) {
    case 'int': {
      const number = asNumber(type, value)
      return (number - (((number % width) + width) % width)) | 0
    }
    case 'long':
      return BigInt.asIntN(64, truncateBigint(asBigint(type, value), width))
    case 'decimal':
      return truncateBigint(asBigint(type, value), width)
    case 'string':
      return truncateString(asString(type, value), width)
    default:
      return asBytes(type, value).subarray(0, width)
  }
}

function truncateBigint(value: bigint, width: number): bigint {
  const w = BigInt(width)
  return value - (((value % w) + w) % w)
}

/** The first code points of a text: a character outside the basic plane counts as one. */
export function truncateString(text: string, codePoints: number): string {
  if (text.length <= codePoints) return text
  let end = 0
  for (let count = 0; count < codePoints && end < text.length; count += 1) {
    end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  }
  return text.slice(0, end)
}

function micros(type: Type, value: Value): bigint {
  const long = asBigint(type, value)
  return type.type === 'timestamp_ns' || type.type === 'timestamptz_ns' ? floorDivide(long, 1000n) : long
}

function epochDays(type: Type, value: Value): number {
  return type.type === 'date' ? asNumber(type, value) : Number(floorDivide(micros(type, value), 86_400_000_000n))
}

function monthsSinceEpoch(days: number): { years: number; months: number } {
  const { year, month } = civilDate(days)
  return { years: year - 1970, months: (year - 1970) * 12 + month - 1 }
}

/** Division towards minus infinity: an hour before 1970 is in hour -1, not 0. */
function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by
  return value % by < 0n ? quotient - 1n : quotient
}
