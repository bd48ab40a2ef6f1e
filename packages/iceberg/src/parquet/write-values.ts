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
import { typeName, type Field, type PrimitiveType, type Type } from '../schema/type.ts'
import { uuidToBytes, viewOf } from '../values/bytes.ts'
import { valueFromJson, type NestedValue } from '../values/json-value.ts'

/**
 * A row by the names of its columns. Values are those of `Value`; a struct is an object, a list an array, a map a Map or
 * an array of pairs. Besides, a long takes an integer number, and timestamps and dates take a Date.
 */
export type Row = Readonly<Record<string, unknown>>

/** Makes DuckDB values of rows, in the order of the fields. Refuses what does not fit its column, naming it. */
export function rowConverter(fields: readonly Field[]): (row: Row, rowNumber: number) => DuckDBValue[] {
  const names = new Set(fields.map((field) => field.name))
  const columns = fields.map((field) => ({ field, convert: fieldConverter(field, field.name) }))
  return (row, rowNumber) => {
    try {
      for (const name of Object.keys(row)) if (!names.has(name)) throw wrong(`there is no column "${name}"`)
      return columns.map(({ field, convert }) => convert(row[field.name]))
    } catch (error) {
      if (!(error instanceof IcebergError)) throw error
      throw new IcebergError(error.code, `Row ${rowNumber} cannot be written: ${error.message}`, { cause: error })
    }
  }
}

type Convert = (value: unknown) => DuckDBValue

function fieldConverter(field: Field, path: string): Convert {
  const convert = typeConverter(field.type, path)
  const writeDefault = field.writeDefault === undefined ? null : defaultOf(field)
  return (value) => {
    const given = value === undefined ? writeDefault : value
    if (given === null) {
      if (field.required) throw wrong(`column ${path} is required, and has no value`)
      return null
    }
    return convert(given)
  }
}

/** Defaults of structs are of their fields, so a default is always one value. */
function defaultOf(field: Field): NestedValue {
  return valueFromJson(field.type, field.writeDefault)
}

function typeConverter(type: Type, path: string): Convert {
  switch (type.type) {
    case 'struct': {
      const members = type.fields.map((field) => [field.name, fieldConverter(field, `${path}.${field.name}`)] as const)
      const names = new Set(type.fields.map((field) => field.name))
      return (value) => {
        if (!isPlainObject(value)) throw mismatch(path, type, value)
        for (const name of Object.keys(value)) if (!names.has(name)) throw wrong(`${path} has no field "${name}"`)
        return new DuckDBStructValue(Object.fromEntries(members.map(([name, convert]) => [name, convert(value[name])])))
      }
    }
    case 'list': {
      const convert = elementConverter(type.element, type.elementRequired, `${path}.element`)
      return (value) => {
        if (!Array.isArray(value)) throw mismatch(path, type, value)
        return new DuckDBListValue(value.map((item) => convert(item)))
      }
    }
    case 'map': {
      const key = elementConverter(type.key, true, `${path}.key`)
      const value = elementConverter(type.value, type.valueRequired, `${path}.value`)
      return (given) => {
        if (!(given instanceof Map) && !Array.isArray(given)) throw mismatch(path, type, given)
        const pairs = [...(given as Iterable<readonly [unknown, unknown]>)]
        return new DuckDBMapValue(pairs.map(([k, v]) => ({ key: key(k), value: value(v) })))
      }
    }
    default:
      return (value) => primitive(type, value, path)
  }
}

function elementConverter(type: Type, required: boolean, path: string): Convert {
  const convert = typeConverter(type, path)
  return (value) => {
    if (value !== null && value !== undefined) return convert(value)
    if (required) throw wrong(`${path} is required, and has no value`)
    return null
  }
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}

/** The same as the format's own value (`Value`), where a row may have it in another form. */
export function plainValue(type: PrimitiveType, value: unknown): unknown {
  if (type.type === 'long' && Number.isSafeInteger(value)) return BigInt(value as number)
  if (value instanceof Date && !Number.isNaN(value.getTime())) {
    const micros = BigInt(value.getTime()) * 1000n
    if (type.type === 'timestamp' || type.type === 'timestamptz') return micros
    if (type.type === 'timestamp_ns') return micros * 1000n
    if (type.type === 'date') return Math.floor(value.getTime() / 86_400_000)
  }
  if (type.type === 'float' && typeof value === 'number') return Math.fround(value)
  // Whole numbers have one zero.
  if ((type.type === 'int' || type.type === 'date') && value === 0) return 0
  if (type.type === 'uuid' && typeof value === 'string') return value.toLowerCase()
  return value
}

const longLimit = 2n ** 63n
const isLong = (value: unknown): value is bigint =>
  typeof value === 'bigint' && value >= -longLimit && value < longLimit
const isInt = (value: unknown): value is number => typeof value === 'number' && (value | 0) === value

function primitive(type: PrimitiveType, given: unknown, path: string): DuckDBValue {
  const value = plainValue(type, given)
  const converted = convertPrimitive(type, value)
  if (converted === undefined) throw mismatch(path, type, given)
  return converted
}

function convertPrimitive(type: PrimitiveType, value: unknown): DuckDBValue | undefined {
  switch (type.type) {
    case 'boolean':
      return typeof value === 'boolean' ? value : undefined
    case 'int':
      return isInt(value) ? value : undefined
    case 'long':
      return isLong(value) ? value : undefined
    case 'float':
    case 'double':
      return typeof value === 'number' ? value : undefined
    case 'string':
      // A lone surrogate has no UTF-8 and would become another character.
      return typeof value === 'string' && value.isWellFormed() ? value : undefined
    case 'uuid':
      return typeof value === 'string' ? DuckDBUUIDValue.fromUint128(uuidNumber(value)) : undefined
    case 'binary':
      return value instanceof Uint8Array ? new DuckDBBlobValue(value) : undefined
    case 'decimal': {
      const fits = typeof value === 'bigint' && (value < 0n ? -value : value) < 10n ** BigInt(type.precision)
      return fits ? new DuckDBDecimalValue(value, type.precision, type.scale) : undefined
    }
    default:
      return convertTime(type, value)
  }
}

function convertTime(type: PrimitiveType, value: unknown): DuckDBValue | undefined {
  // The ends of the range are infinities to DuckDB, and no dates.
  switch (type.type) {
    case 'date':
      return isInt(value) && Math.abs(value) < 2 ** 31 - 1 ? new DuckDBDateValue(value) : undefined
    case 'time':
      return isLong(value) && value >= 0n && value < 86_400_000_000n ? new DuckDBTimeValue(value) : undefined
    case 'timestamp':
      return isFinite(value) ? new DuckDBTimestampValue(value) : undefined
    case 'timestamptz':
      return isFinite(value) ? new DuckDBTimestampTZValue(value) : undefined
    case 'timestamp_ns':
      return isFinite(value) ? new DuckDBTimestampNanosecondsValue(value) : undefined
    default:
      return undefined
  }
}

function isFinite(value: unknown): value is bigint {
  return isLong(value) && value > -longLimit + 1n && value < longLimit - 1n
}

function uuidNumber(text: string): bigint {
  return BigInt(`0x${viewOf(uuidToBytes(text)).toString('hex')}`)
}

function mismatch(path: string, type: Type, value: unknown): IcebergError {
  const shown = typeof value === 'object' && value !== null ? (value.constructor?.name ?? 'an object') : typeof value
  const text = typeof value === 'number' || typeof value === 'bigint' ? ` ${value}` : ''
  return wrong(`column ${path} of type ${typeName(type)} cannot hold this ${shown}${text}`)
}

function wrong(message: string): IcebergError {
  return new IcebergError('value_invalid', message)
}
