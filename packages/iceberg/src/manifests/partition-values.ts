import { IcebergError } from '../errors.ts'
import type { AvroReader } from '../avro/avro-reader.ts'
import type { AvroSchema } from '../avro/avro-schema.ts'
import type { AvroWriter } from '../avro/avro-writer.ts'
import { compileBytes, compileOptional, compileSkip, type Read } from '../avro/compile.ts'
import type { PrimitiveType } from '../schema/type.ts'
import { decimalBytes } from '../avro/type-to-avro.ts'
import { integerFromBytes, integerToBytes, uuidFromBytes, uuidToBytes } from '../values/bytes.ts'
import type { Value } from '../values/value.ts'
import { asBigint, asBytes, asNumber, asString, wrongValue } from '../values/value.ts'
import type { PartitionValues } from './content-file.ts'
import type { PartitionTypeField } from './partition-type.ts'

/** Reads the partition tuple of a file: its values by field id, in the order of the given fields. */
export function compilePartition(schema: AvroSchema, fields: readonly PartitionTypeField[]): Read<PartitionValues> {
  if (schema.kind !== 'record') throw new IcebergError('avro_invalid', 'The partition of a manifest is not a record')
  const steps = schema.fields.map((field): ((r: AvroReader, values: (Value | null)[]) => void) => {
    const index = fields.findIndex((f) => (field.id === undefined ? f.name === field.name : f.fieldId === field.id))
    const wanted = fields[index]
    if (wanted === undefined) return compileSkip(field.schema)
    const read = compileOptional(field.schema, (s) => compileValue(s, wanted.type))
    return (r, values) => {
      values[index] = read(r) ?? null
    }
  })
  if (fields.length === 0 && steps.length === 0) {
    const none: PartitionValues = []
    return () => none
  }
  return (r) => {
    const values = new Array<Value | null>(fields.length).fill(null)
    for (const step of steps) step(r, values)
    return values
  }
}

/** The value as its Iceberg type has it; a column may have been widened since the manifest was written. */
function compileValue(schema: AvroSchema, type: PrimitiveType): Read<Value> {
  switch (schema.kind) {
    case 'boolean':
      return (r) => r.boolean()
    case 'int':
    case 'long':
      return wantsBigint(schema, type) ? (r) => r.bigint() : (r) => r.number()
    case 'float':
      return (r) => r.float()
    case 'double':
      return (r) => r.double()
    case 'string':
      return (r) => r.string()
    default:
      return compileByteValue(schema, type)
  }
}

function compileByteValue(schema: AvroSchema, type: PrimitiveType): Read<Value> {
  const read = compileBytes(schema)
  const logicalType = schema.kind === 'fixed' ? schema.logical?.name : undefined
  if (type.type === 'decimal' || logicalType === 'decimal') return (r) => integerFromBytes(read(r))
  if (type.type === 'uuid' || logicalType === 'uuid') return (r) => uuidFromBytes(read(r))
  // A copy: the value outlives the block it was read from.
  return (r) => Buffer.from(read(r))
}

function wantsBigint(schema: AvroSchema, type: PrimitiveType): boolean {
  if (type.type === 'int' || type.type === 'date') return false
  return type.type === 'unknown' ? schema.kind === 'long' : true
}

export function writePartitionValue(writer: AvroWriter, type: PrimitiveType, value: Value): void {
  switch (type.type) {
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongValue(type, value)
      return writer.boolean(value)
    case 'int':
    case 'date':
      return writer.number(asNumber(type, value))
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return writer.bigint(asBigint(type, value))
    case 'float':
      return writer.float(asNumber(type, value))
    case 'double':
      return writer.double(asNumber(type, value))
    case 'string':
      return writer.string(asString(type, value))
    case 'uuid':
      return writer.raw(uuidToBytes(asString(type, value)))
    case 'decimal':
      return writer.raw(integerToBytes(asBigint(type, value), decimalBytes(type.precision)))
    case 'fixed':
      if (asBytes(type, value).length !== type.length) throw wrongValue(type, value)
      return writer.raw(asBytes(type, value))
    case 'binary':
      return writer.byteString(asBytes(type, value))
    case 'unknown':
    case 'variant':
    case 'geometry':
    case 'geography':
      throw new IcebergError(
        'manifest_invalid',
        `A partition value of type ${type.type} cannot be written: its column is gone from the schema`,
      )
  }
}
