import { IcebergError } from '../errors.ts'
import { type Json, type JsonObject, stringifyJson } from '../json/json.ts'
import { compact } from '../json/object-reader.ts'
import type { Field, PrimitiveType, Type } from '../schema/type.ts'
import { integerToBytes } from '../values/bytes.ts'

/** The Avro schema of a struct, with Iceberg's ids, as Iceberg's own writers have it. */
export function avroSchemaText(recordName: string, fields: readonly Field[]): string {
  return stringifyJson(record(recordName, fields, new Set()))
}

function record(name: string, fields: readonly Field[], named: Set<string>): JsonObject {
  return { type: 'record', name, fields: fields.map((field) => avroField(field, named)) }
}

function avroField(field: Field, named: Set<string>): JsonObject {
  const type = typeToAvro(field.type, field.id, named)
  const name = avroName(field.name)
  return compact({
    name,
    type: field.required || type === 'null' ? type : ['null', type],
    ...(field.required ? {} : { default: null }),
    'iceberg-field-name': name === field.name ? undefined : field.name,
    'field-id': field.id,
  })
}

/** Avro's names hold letters, digits and underscores only; anything else becomes its code. */
function avroName(name: string): string {
  if (name === '') return '_'
  return name.replace(/^[0-9]|[^A-Za-z0-9_]/g, (character) =>
    /[0-9]/.test(character) ? `_${character}` : `_x${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function typeToAvro(type: Type, id: number, named: Set<string>): Json {
  switch (type.type) {
    case 'struct':
      return record(`r${id}`, type.fields, named)
    case 'list': {
      const items = typeToAvro(type.element, type.elementId, named)
      return { type: 'array', items: type.elementRequired ? items : ['null', items], 'element-id': type.elementId }
    }
    case 'map': {
      const pair = [
        { id: type.keyId, name: 'key', required: true, type: type.key },
        { id: type.valueId, name: 'value', required: type.valueRequired, type: type.value },
      ]
      return { type: 'array', items: record(`k${type.keyId}_v${type.valueId}`, pair, named), logicalType: 'map' }
    }
    default:
      return primitiveToAvro(type, named)
  }
}

/** `named` holds names that are defined already. */
function primitiveToAvro(type: PrimitiveType, named: Set<string>): Json {
  switch (type.type) {
    case 'unknown':
      return 'null'
    case 'date':
      return { type: 'int', logicalType: 'date' }
    case 'time':
      return { type: 'long', logicalType: 'time-micros' }
    case 'timestamp':
    case 'timestamptz':
      return { type: 'long', logicalType: 'timestamp-micros', 'adjust-to-utc': type.type === 'timestamptz' }
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return { type: 'long', logicalType: 'timestamp-nanos', 'adjust-to-utc': type.type === 'timestamptz_ns' }
    case 'uuid':
      return withOwnName(named, { type: 'fixed', name: 'uuid_fixed', size: 16, logicalType: 'uuid' })
    case 'fixed':
      return withOwnName(named, { type: 'fixed', name: `fixed_${type.length}`, size: type.length })
    case 'decimal':
      return withOwnName(named, {
        type: 'fixed',
        name: `decimal_${type.precision}_${type.scale}`,
        size: decimalBytes(type.precision),
        logicalType: 'decimal',
        precision: type.precision,
        scale: type.scale,
      })
    case 'binary':
    case 'geometry':
    case 'geography':
      return 'bytes'
    case 'boolean':
    case 'int':
    case 'long':
    case 'float':
    case 'double':
    case 'string':
      return type.type
    case 'variant':
      throw new IcebergError('avro_invalid', 'A variant cannot be written as Avro')
  }
}

/**
 * Avro allows a name to be defined once, and to be referred to after that. Some readers of Iceberg do not follow such a
 * reference, so that every definition gets a name of its own; readers go by field ids, not by names.
 */
function withOwnName(named: Set<string>, definition: JsonObject & { name: string }): Json {
  let { name } = definition
  for (let i = 2; named.has(name); i += 1) name = `${definition.name}_${i}`
  named.add(name)
  return { ...definition, name }
}

/** The fewest bytes that hold every decimal of this many digits. */
export function decimalBytes(precision: number): number {
  return integerToBytes(-(10n ** BigInt(precision)) + 1n).length
}
