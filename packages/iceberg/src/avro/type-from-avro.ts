import type { PrimitiveType } from '../schema/type.ts'
import type { AvroLogicalType, AvroSchema } from './avro-schema.ts'

/** The type whose values an Avro schema holds, null or not: the way back from `avroSchemaText`. */
export function typeFromAvro(schema: AvroSchema): PrimitiveType {
  switch (schema.kind) {
    case 'union':
      return typeFromAvro(schema.branches.find((branch) => branch.kind !== 'null') ?? { kind: 'null' })
    case 'int':
      return { type: schema.logical?.name === 'date' ? 'date' : 'int' }
    case 'long':
      return { type: longType(schema.logical) }
    case 'bytes':
      return decimalType(schema.logical) ?? { type: 'binary' }
    case 'fixed':
      if (schema.logical?.name === 'uuid') return { type: 'uuid' }
      return decimalType(schema.logical) ?? { type: 'fixed', length: schema.size }
    case 'boolean':
    case 'float':
    case 'double':
    case 'string':
      return { type: schema.kind }
    default:
      return { type: 'unknown' }
  }
}

function longType(logical: AvroLogicalType | undefined) {
  switch (logical?.name) {
    case 'time-micros':
      return 'time'
    case 'timestamp-micros':
      return logical.adjustToUtc ? 'timestamptz' : 'timestamp'
    case 'timestamp-nanos':
      return logical.adjustToUtc ? 'timestamptz_ns' : 'timestamp_ns'
    default:
      return 'long'
  }
}

function decimalType(logical: AvroLogicalType | undefined): PrimitiveType | undefined {
  if (logical?.name !== 'decimal') return undefined
  return { type: 'decimal', precision: logical.precision, scale: logical.scale }
}
