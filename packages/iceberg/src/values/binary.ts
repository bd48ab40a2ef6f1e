import { IcebergError } from '../errors.ts'
import { type Type, typeName } from '../schema/type.ts'
import { integerFromBytes, integerToBytes, uuidFromBytes, uuidToBytes, viewOf } from './bytes.ts'
import { asBigint, asBytes, asInteger, asNumber, asString, type Value, wrongValue } from './value.ts'

const microsPerDay = 86_400_000_000n

/** The binary single-value form of the format (Appendix D), in which bounds are kept. */
export function valueToBytes(type: Type, value: Value): Uint8Array {
  switch (type.type) {
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongValue(type, value)
      return Uint8Array.of(value ? 1 : 0)
    case 'int':
    case 'date':
      return filled(4, (b) => b.writeInt32LE(asInteger(type, value)))
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return filled(8, (b) => b.writeBigInt64LE(asBigint(type, value)))
    case 'float':
      return filled(4, (b) => b.writeFloatLE(asNumber(type, value)))
    case 'double':
      return filled(8, (b) => b.writeDoubleLE(asNumber(type, value)))
    case 'string':
      return Buffer.from(asString(type, value), 'utf8')
    case 'uuid':
      return uuidToBytes(asString(type, value))
    case 'decimal':
      return integerToBytes(asBigint(type, value))
    case 'fixed':
    case 'binary':
    case 'geometry':
    case 'geography':
      return asBytes(type, value)
    case 'variant':
    case 'unknown':
    case 'struct':
    case 'list':
    case 'map':
      throw new IcebergError('value_invalid', `The type ${typeName(type)} has no binary single value`)
  }
}

function filled(length: number, write: (buffer: Buffer) => void): Uint8Array {
  const buffer = Buffer.alloc(length)
  write(buffer)
  return buffer
}

/**
 * Reads the binary single-value form. A value that was written before its column was widened is still short: 4 bytes
 * on a long are an int, on a double a float, on a timestamp a date.
 */
export function valueFromBytes(type: Type, bytes: Uint8Array): Value {
  const b = viewOf(bytes)
  switch (type.type) {
    case 'boolean':
      return sized(type, b, 1).readUInt8() !== 0
    case 'int':
    case 'date':
      return sized(type, b, 4).readInt32LE()
    case 'long':
      return b.length === 4 ? BigInt(b.readInt32LE()) : sized(type, b, 8).readBigInt64LE()
    case 'time':
      return sized(type, b, 8).readBigInt64LE()
    case 'timestamp':
    case 'timestamptz':
      return b.length === 4 ? BigInt(b.readInt32LE()) * microsPerDay : sized(type, b, 8).readBigInt64LE()
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return b.length === 4 ? BigInt(b.readInt32LE()) * microsPerDay * 1000n : sized(type, b, 8).readBigInt64LE()
    case 'float':
      return sized(type, b, 4).readFloatLE()
    case 'double':
      return b.length === 4 ? b.readFloatLE() : sized(type, b, 8).readDoubleLE()
    case 'string':
      return b.toString('utf8')
    case 'uuid':
      return uuidFromBytes(b)
    case 'decimal':
      return integerFromBytes(b)
    case 'fixed':
    case 'binary':
    case 'geometry':
    case 'geography':
      return bytes
    case 'variant':
    case 'unknown':
    case 'struct':
    case 'list':
    case 'map':
      throw new IcebergError('value_invalid', `The type ${typeName(type)} has no binary single value`)
  }
}

function sized(type: Type, bytes: Buffer, length: number): Buffer {
  if (bytes.length === length) return bytes
  throw new IcebergError('value_invalid', `A ${typeName(type)} has ${length} bytes, but ${bytes.length} were given`)
}
