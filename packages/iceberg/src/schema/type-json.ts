import { IcebergError } from '../errors.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compact, ObjectReader } from '../json/object-reader.ts'
import { type Field, plainTypeNames, type PrimitiveType, type Type, typeName } from './type.ts'

const plainTypes: ReadonlyMap<string, PrimitiveType> = new Map(plainTypeNames.map((type) => [type, { type }]))

/** Reads a type's text: "int", "decimal(9, 2)", "fixed[16]", "geography(srid:4326, spherical)". */
export function parsePrimitiveType(text: string, what = 'A type'): PrimitiveType {
  const name = text.trim().toLowerCase()
  const plain = plainTypes.get(name)
  if (plain !== undefined) return plain
  const fixed = /^fixed\s*\[\s*(\d+)\s*\]$/.exec(name)
  if (fixed !== null) return { type: 'fixed', length: Number(fixed[1]) }
  const decimal = /^decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)$/.exec(name)
  if (decimal !== null) return decimalType(Number(decimal[1]), Number(decimal[2]), what)
  return parseGeoType(text.trim(), what)
}

function decimalType(precision: number, scale: number, what: string): PrimitiveType {
  if (precision < 1 || precision > 38 || scale > precision) {
    throw new IcebergError(
      'metadata_invalid',
      `${what} is decimal(${precision}, ${scale}); at most 38 digits are allowed`,
    )
  }
  return { type: 'decimal', precision, scale }
}

function parseGeoType(text: string, what: string): PrimitiveType {
  const geometry = /^geometry\s*(?:\(\s*([^,()]+?)\s*\))?$/i.exec(text)
  if (geometry !== null) return { type: 'geometry', ...(geometry[1] === undefined ? {} : { crs: geometry[1] }) }
  const geography = /^geography\s*(?:\(\s*([^,()]+?)\s*(?:,\s*(\w+)\s*)?\))?$/i.exec(text)
  if (geography === null) {
    throw new IcebergError('metadata_unsupported', `${what} has the type "${text}", which this release does not know`)
  }
  const [, crs, algorithm] = geography
  return { type: 'geography', ...(crs === undefined ? {} : { crs }), ...(algorithm === undefined ? {} : { algorithm }) }
}

export function typeFromJson(json: Json | undefined, what: string): Type {
  if (typeof json === 'string') return parsePrimitiveType(json, what)
  const r = new ObjectReader(json, what)
  const type = r.string('type')
  switch (type) {
    case 'struct':
      return { type, fields: r.array('fields', fieldFromJson), ...r.unknown() }
    case 'list':
      return {
        type,
        elementId: r.int('element-id'),
        element: typeFromJson(r.raw('element'), `${what}, element`),
        elementRequired: r.boolean('element-required'),
        ...r.unknown(),
      }
    case 'map':
      return {
        type,
        keyId: r.int('key-id'),
        key: typeFromJson(r.raw('key'), `${what}, key`),
        valueId: r.int('value-id'),
        value: typeFromJson(r.raw('value'), `${what}, value`),
        valueRequired: r.boolean('value-required'),
        ...r.unknown(),
      }
    default:
      throw new IcebergError('metadata_unsupported', `${what} has the type "${type}", which this release does not know`)
  }
}

export function typeToJson(type: Type): Json {
  switch (type.type) {
    case 'struct':
      return { type: 'struct', fields: type.fields.map(fieldToJson), ...type.unknownKeys }
    case 'list':
      return {
        type: 'list',
        'element-id': type.elementId,
        element: typeToJson(type.element),
        'element-required': type.elementRequired,
        ...type.unknownKeys,
      }
    case 'map':
      return {
        type: 'map',
        'key-id': type.keyId,
        key: typeToJson(type.key),
        'value-id': type.valueId,
        value: typeToJson(type.value),
        'value-required': type.valueRequired,
        ...type.unknownKeys,
      }
    default:
      return typeName(type)
  }
}

function fieldFromJson(json: Json, what: string): Field {
  const r = new ObjectReader(json, what)
  const name = r.string('name')
  const doc = r.optionalString('doc')
  const initialDefault = r.raw('initial-default')
  const writeDefault = r.raw('write-default')
  return {
    id: r.int('id'),
    name,
    required: r.boolean('required'),
    type: typeFromJson(r.raw('type'), `Column "${name}"`),
    ...(doc === undefined ? {} : { doc }),
    ...(initialDefault === undefined ? {} : { initialDefault }),
    ...(writeDefault === undefined ? {} : { writeDefault }),
    ...r.unknown(),
  }
}

function fieldToJson(field: Field): JsonObject {
  return compact({
    id: field.id,
    name: field.name,
    required: field.required,
    type: typeToJson(field.type),
    doc: field.doc,
    'initial-default': field.initialDefault,
    'write-default': field.writeDefault,
    ...field.unknownKeys,
  })
}
