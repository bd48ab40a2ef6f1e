import type { Json, JsonObject } from '../json/json.ts'

/** Names of the types that have no parameters. */
export const plainTypeNames = [
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'timestamp_ns',
  'timestamptz_ns',
  'string',
  'uuid',
  'binary',
  'variant',
  'unknown',
] as const

export type PlainTypeName = (typeof plainTypeNames)[number]

/** A type without fields: one value of it is one value. */
export type PrimitiveType =
  | { readonly type: PlainTypeName }
  | { readonly type: 'fixed'; readonly length: number }
  | { readonly type: 'decimal'; readonly precision: number; readonly scale: number }
  | { readonly type: 'geometry'; readonly crs?: string }
  | { readonly type: 'geography'; readonly crs?: string; readonly algorithm?: string }

export interface StructType {
  readonly type: 'struct'
  readonly fields: readonly Field[]
  readonly unknownKeys?: JsonObject
}

export interface ListType {
  readonly type: 'list'
  readonly elementId: number
  readonly element: Type
  readonly elementRequired: boolean
  readonly unknownKeys?: JsonObject
}

export interface MapType {
  readonly type: 'map'
  readonly keyId: number
  readonly key: Type
  readonly valueId: number
  readonly value: Type
  readonly valueRequired: boolean
  readonly unknownKeys?: JsonObject
}

export type NestedType = StructType | ListType | MapType
export type Type = PrimitiveType | NestedType

/** A column, or a field of a struct. Defaults are kept as JSON single values; see `valueFromJson`. */
export interface Field {
  readonly id: number
  readonly name: string
  readonly required: boolean
  readonly type: Type
  readonly doc?: string
  readonly initialDefault?: Json
  readonly writeDefault?: Json
  readonly unknownKeys?: JsonObject
}

export function isNested(type: Type): type is NestedType {
  return type.type === 'struct' || type.type === 'list' || type.type === 'map'
}

/** The type's text as the format writes it: "decimal(9, 2)", "fixed[16]", "struct<…>". */
export function typeName(type: Type): string {
  switch (type.type) {
    case 'fixed':
      return `fixed[${type.length}]`
    case 'decimal':
      return `decimal(${type.precision}, ${type.scale})`
    case 'geometry':
      return type.crs === undefined ? 'geometry' : `geometry(${type.crs})`
    case 'geography':
      return geographyName(type)
    case 'struct':
      return `struct<${type.fields.map((f) => `${f.id}: ${f.name}: ${typeName(f.type)}`).join(', ')}>`
    case 'list':
      return `list<${typeName(type.element)}>`
    case 'map':
      return `map<${typeName(type.key)}, ${typeName(type.value)}>`
    default:
      return type.type
  }
}

function geographyName(type: { crs?: string; algorithm?: string }): string {
  const parameters = [type.crs, type.algorithm].filter((p) => p !== undefined)
  return parameters.length === 0 ? 'geography' : `geography(${parameters.join(', ')})`
}

/** Whether two types are the same, ids and names of their fields included. */
export function sameType(a: Type, b: Type): boolean {
  if (a.type === 'struct' && b.type === 'struct') {
    return (
      a.fields.length === b.fields.length &&
      a.fields.every((field, index) => {
        const other = b.fields[index]
        return (
          other !== undefined &&
          field.id === other.id &&
          field.name === other.name &&
          field.required === other.required &&
          sameType(field.type, other.type)
        )
      })
    )
  }
  if (a.type === 'list' && b.type === 'list') {
    return a.elementId === b.elementId && a.elementRequired === b.elementRequired && sameType(a.element, b.element)
  }
  if (a.type === 'map' && b.type === 'map') {
    const flat = a.keyId === b.keyId && a.valueId === b.valueId && a.valueRequired === b.valueRequired
    return flat && sameType(a.key, b.key) && sameType(a.value, b.value)
  }
  return !isNested(a) && !isNested(b) && typeName(a) === typeName(b)
}
