import { sqlName, sqlText } from '../parquet/duckdb.ts'
import type { Type } from '../schema/type.ts'
import { typeName } from '../schema/type.ts'
import { viewOf } from '../values/bytes.ts'
import { formatTime } from '../values/date-time.ts'
import { formatDecimal } from '../values/decimal.ts'
import { asBigint, asBytes, asNumber, type Value, wrongValue } from '../values/value.ts'
import { IcebergError } from '../errors.ts'

const plainTypes: Partial<Record<Type['type'], string>> = {
  boolean: 'boolean',
  int: 'integer',
  long: 'bigint',
  float: 'float',
  double: 'double',
  date: 'date',
  time: 'time',
  timestamp: 'timestamp',
  timestamptz: 'timestamptz',
  timestamp_ns: 'timestamp_ns',
  string: 'varchar',
  uuid: 'uuid',
  fixed: 'blob',
  binary: 'blob',
  // Holds nulls alone.
  unknown: 'boolean',
}

/** How structs name their fields in SQL. By field id by default, since DuckDB knows no difference of case in names. */
export type FieldName = (field: { readonly id: number; readonly name: string }) => string

export const nameById: FieldName = ({ id }) => `f${id}`

/** The DuckDB type that holds a type of Iceberg exactly. */
export function sqlType(type: Type, nameOf: FieldName = nameById): string {
  switch (type.type) {
    case 'struct':
      return `struct(${type.fields.map((f) => `${sqlName(nameOf(f))} ${sqlType(f.type, nameOf)}`).join(', ')})`
    case 'list':
      return `${sqlType(type.element, nameOf)}[]`
    case 'map':
      return `map(${sqlType(type.key, nameOf)}, ${sqlType(type.value, nameOf)})`
    case 'decimal':
      return `decimal(${type.precision}, ${type.scale})`
    default: {
      const found = plainTypes[type.type]
      if (found === undefined) throw new IcebergError('scan_unsupported', `A ${typeName(type)} cannot be read exactly.`)
      return found
    }
  }
}

/** A value of a primitive type as an expression of SQL. */
export function sqlValue(type: Type, value: Value): string {
  switch (type.type) {
    case 'boolean':
      if (typeof value !== 'boolean') throw wrongValue(type, value)
      return String(value)
    case 'float':
    case 'double':
      return `cast(${sqlText(Object.is(value, -0) ? '-0.0' : String(asNumber(type, value)))} as ${type.type})`
    case 'decimal':
      return `cast(${sqlText(formatDecimal(asBigint(type, value), type.scale))} as ${sqlType(type)})`
    case 'date':
      return `(date '1970-01-01' + ${asNumber(type, value)})`
    case 'time':
      return `cast(${sqlText(formatTime(asBigint(type, value), 6))} as time)`
    case 'timestamp':
      return `make_timestamp(${asBigint(type, value)})`
    case 'timestamptz':
      return `cast(make_timestamp(${asBigint(type, value)}) as timestamptz)`
    case 'timestamp_ns':
      return `make_timestamp_ns(${asBigint(type, value)})`
    case 'fixed':
    case 'binary':
      return `unhex('${viewOf(asBytes(type, value)).toString('hex')}')`
    case 'int':
    case 'long':
      return `cast('${String(value)}' as ${sqlType(type)})`
    default:
      if (typeof value !== 'string') throw wrongValue(type, value)
      return `cast(${sqlText(value)} as ${sqlType(type)})`
  }
}
