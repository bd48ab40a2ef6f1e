import { IcebergError } from '../errors.ts'
import { type Json, type JsonObject, NumberText } from '../json/json.ts'
import { isObject } from '../json/object-reader.ts'
import { type Type, typeName } from '../schema/type.ts'
import { uuidToBytes, viewOf } from './bytes.ts'
import { formatDate, formatTime, formatTimestamp, parseDate, parseTime, parseTimestamp } from './date-time.ts'
import { formatDecimal, parseDecimal } from './decimal.ts'
import { asBigint, asBytes, asNumber, asString, type Value, wrongValue } from './value.ts'

/** A value of any type: a struct by field id, a list, or a map as pairs. */
export type NestedValue = Value | null | Map<number, NestedValue> | NestedValue[] | MapEntries
/** The pairs of a map value. */
export interface MapEntries {
  readonly keys: NestedValue[]
  readonly values: NestedValue[]
}

/** Reads the JSON single-value form (Appendix D), in which defaults are kept. */
export function valueFromJson(type: Type, json: Json | undefined): NestedValue {
  if (json === null || json === undefined) return null
  switch (type.type) {
    case 'struct': {
      if (!isObject(json)) throw wrongJson(type, json)
      return new Map(type.fields.map((field) => [field.id, valueFromJson(field.type, json[String(field.id)])]))
    }
    case 'list':
      return items(type, json).map((item) => valueFromJson(type.element, item))
    case 'map': {
      if (!isObject(json)) throw wrongJson(type, json)
      const keys = items(type, json['keys']).map((key) => valueFromJson(type.key, key))
      const values = items(type, json['values']).map((value) => valueFromJson(type.value, value))
      if (keys.length !== values.length) throw wrongJson(type, json)
      return { keys, values }
    }
    default:
      return primitiveFromJson(type, json)
  }
}

function items(type: Type, json: Json | undefined): Json[] {
  if (!Array.isArray(json)) throw wrongJson(type, json)
  return json
}

function primitiveFromJson(type: Type, json: Json): Value {
  switch (type.type) {
    case 'boolean':
      if (typeof json !== 'boolean') throw wrongJson(type, json)
      return json
    case 'int':
      if (typeof json !== 'number' || (json | 0) !== json) throw wrongJson(type, json)
      return json
    case 'long':
      if (typeof json === 'number' && Number.isSafeInteger(json)) return BigInt(json)
      if (typeof json !== 'bigint' || BigInt.asIntN(64, json) !== json) throw wrongJson(type, json)
      return json
    case 'float':
    case 'double':
      if (json instanceof NumberText) return Number(json.text)
      if (typeof json !== 'number' && typeof json !== 'bigint') throw wrongJson(type, json)
      return Number(json)
    default:
      if (typeof json !== 'string') throw wrongJson(type, json)
      return textToValue(type, json)
  }
}

function textToValue(type: Type, text: string): Value {
  switch (type.type) {
    case 'string':
      return text
    case 'uuid':
      uuidToBytes(text)
      return text.toLowerCase()
    case 'decimal':
      return parseDecimal(text, type.scale)
    case 'date':
      return parseDate(text)
    case 'time':
      return parseTime(text, 6)
    case 'timestamp':
    case 'timestamptz':
      return parseTimestamp(text, 6, type.type === 'timestamptz')
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return parseTimestamp(text, 9, type.type === 'timestamptz_ns')
    case 'fixed':
    case 'binary': {
      if (!/^([0-9a-f]{2})*$/i.test(text)) throw wrongJson(type, text)
      const bytes = Buffer.from(text, 'hex')
      if (type.type === 'fixed' && bytes.length !== type.length) throw wrongJson(type, text)
      return bytes
    }
    default:
      throw new IcebergError('value_invalid', `A default of type ${typeName(type)} is not supported`)
  }
}

/** Writes the JSON single-value form. */
export function valueToJson(type: Type, value: NestedValue): Json {
  if (value === null) return null
  switch (type.type) {
    case 'struct': {
      if (!(value instanceof Map)) throw wrongValue(type, value)
      const object: JsonObject = {}
      for (const field of type.fields) object[String(field.id)] = valueToJson(field.type, value.get(field.id) ?? null)
      return object
    }
    case 'list':
      if (!Array.isArray(value)) throw wrongValue(type, value)
      return value.map((item) => valueToJson(type.element, item))
    case 'map': {
      if (typeof value !== 'object' || !('keys' in value) || !Array.isArray(value.keys)) throw wrongValue(type, value)
      const { keys, values } = value as MapEntries
      return { keys: keys.map((k) => valueToJson(type.key, k)), values: values.map((v) => valueToJson(type.value, v)) }
    }
    default:
      return primitiveToJson(type, value as Value)
  }
}

function primitiveToJson(type: Type, value: Value): Json {
  switch (type.type) {
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongValue(type, value)
      return value
    case 'long':
      return asBigint(type, value)
    case 'int':
    case 'float':
    case 'double':
      if (!Number.isFinite(value)) throw wrongValue(type, value)
      return asNumber(type, value)
    case 'string':
    case 'uuid':
      return asString(type, value)
    case 'decimal':
      return formatDecimal(asBigint(type, value), type.scale)
    case 'date':
      return formatDate(asNumber(type, value))
    case 'time':
      return formatTime(asBigint(type, value), 6)
    case 'timestamp':
    case 'timestamptz':
      return formatTimestamp(asBigint(type, value), 6, type.type === 'timestamptz')
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return formatTimestamp(asBigint(type, value), 9, type.type === 'timestamptz_ns')
    case 'fixed':
    case 'binary':
      return viewOf(asBytes(type, value)).toString('hex')
    default:
      throw new IcebergError('value_invalid', `A default of type ${typeName(type)} is not supported`)
  }
}

function wrongJson(type: Type, json: Json | undefined): IcebergError {
  const shown = typeof json === 'object' ? 'an object' : String(json)
  return new IcebergError('value_invalid', `${shown} is not the JSON form of a ${typeName(type)}`)
}
