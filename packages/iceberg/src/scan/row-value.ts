import {
  DuckDBBlobValue,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeValue,
  DuckDBUUIDValue,
  type DuckDBValue,
} from '@duckdb/node-api'
import { IcebergError } from '../errors.ts'
import { typeName, type Type } from '../schema/type.ts'
import type { Value } from '../values/value.ts'

/** A value of a row: a struct is an object, a list an array, a map an array of pairs. */
export type RowValue = Value | null | RowStruct | readonly RowValue[] | RowMap
export interface RowStruct {
  readonly [name: string]: RowValue
}
export type RowMap = readonly (readonly [key: RowValue, value: RowValue])[]

/** A row by the names of its columns, in their order. */
export type ScannedRow = RowStruct

type Convert = (value: DuckDBValue) => RowValue

/** Makes the values of a column of what DuckDB gives for it. */
export function valueReader(type: Type): Convert {
  const convert = nestedReader(type) ?? ((value) => primitive(type, value))
  return (value) => (value === null ? null : convert(value))
}

function nestedReader(type: Type): Convert | undefined {
  switch (type.type) {
    case 'struct': {
      const members = type.fields.map((field) => [field.name, valueReader(field.type)] as const)
      return (value) => {
        if (!(value instanceof DuckDBStructValue)) throw unexpected(type, value)
        // By place: the names in SQL are not those of the table.
        const values = Object.values(value.entries)
        return Object.fromEntries(members.map(([name, read], index) => [name, read(values[index] ?? null)]))
      }
    }
    case 'list': {
      const read = valueReader(type.element)
      return (value) => {
        if (!(value instanceof DuckDBListValue)) throw unexpected(type, value)
        return value.items.map(read)
      }
    }
    case 'map': {
      const [readKey, readValue] = [valueReader(type.key), valueReader(type.value)]
      return (value) => {
        if (!(value instanceof DuckDBMapValue)) throw unexpected(type, value)
        return value.entries.map((entry) => [readKey(entry.key), readValue(entry.value)] as const)
      }
    }
    default:
      return undefined
  }
}

function primitive(type: Type, value: DuckDBValue): Value {
  switch (type.type) {
    case 'boolean':
      if (typeof value === 'boolean') return value
      break
    case 'int':
    case 'float':
    case 'double':
      if (typeof value === 'number') return value
      break
    case 'long':
      if (typeof value === 'bigint') return value
      break
    case 'string':
      if (typeof value === 'string') return value
      break
    case 'decimal':
      if (value instanceof DuckDBDecimalValue) return value.value
      break
    case 'uuid':
      if (value instanceof DuckDBUUIDValue) return value.toString()
      break
    case 'fixed':
    case 'binary':
      if (value instanceof DuckDBBlobValue) return bytesOf(type, value.bytes)
      break
    default:
      return time(type, value)
  }
  throw unexpected(type, value)
}

function time(type: Type, value: DuckDBValue): Value {
  if (type.type === 'date' && value instanceof DuckDBDateValue) return value.days
  if (type.type === 'time' && value instanceof DuckDBTimeValue) return value.micros
  if (type.type === 'timestamp' && value instanceof DuckDBTimestampValue) return value.micros
  if (type.type === 'timestamptz' && value instanceof DuckDBTimestampTZValue) return value.micros
  if (type.type === 'timestamp_ns' && value instanceof DuckDBTimestampNanosecondsValue) return value.nanos
  throw unexpected(type, value)
}

function bytesOf(type: Type, bytes: Uint8Array): Uint8Array {
  if (type.type === 'fixed' && bytes.length !== type.length) {
    throw new IcebergError('parquet_invalid', `A value of a ${typeName(type)} column has ${bytes.length} bytes.`)
  }
  // What DuckDB gives is a part of a chunk, which would be kept as a whole.
  return Uint8Array.from(bytes)
}

function unexpected(type: Type, value: DuckDBValue): IcebergError {
  const kind = typeof value === 'object' && value !== null ? value.constructor.name : typeof value
  return new IcebergError('parquet_invalid', `DuckDB gave a ${kind} for a ${typeName(type)}.`)
}
