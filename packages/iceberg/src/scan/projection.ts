import { IcebergError } from '../errors.ts'
import { sqlName } from '../parquet/duckdb.ts'
import type { ParquetColumn, ParquetType } from '../parquet/parquet-column.ts'
import { isNested, typeName, type Field, type PrimitiveType, type StructType, type Type } from '../schema/type.ts'
import { valueFromJson } from '../values/json-value.ts'
import type { Value } from '../values/value.ts'
import { nameById, sqlType, sqlValue, type FieldName } from './sql-value.ts'

// A column of a data file becomes a column of the table by field id, at every depth: members of structs are taken by
// their place (DuckDB knows no difference of case in names), and put together anew in the order and with the names of
// the table. What the file does not have is, in this order: the value of an identity partition, the initial default,
// null.

const refused: Partial<Record<Type['type'], string>> = {
  timestamptz_ns: 'DuckDB would cut it to microseconds',
  variant: 'its values have no form here',
  geometry: 'its values have no form here',
  geography: 'its values have no form here',
}

/** The types whose values this package does not read, with the reason. */
export const unreadableTypes: Readonly<Partial<Record<Type['type'], string>>> = refused

/** Refuses, before any file is opened, columns whose values could not be read exactly. */
export function assertReadable(fields: readonly Field[], table: string): void {
  for (const field of fields) assertReadableType(field.type, field.name, table)
}

function assertReadableType(type: Type, path: string, table: string): void {
  const reason = refused[type.type]
  if (reason !== undefined) {
    throw new IcebergError(
      'scan_unsupported',
      `Column ${path} of ${table} is ${typeName(type)}, which cannot be read exactly: ${reason}. Leave it out of the scan, or read it with another engine.`,
      { details: { table, column: path, type: typeName(type) } },
    )
  }
  if (type.type === 'struct') {
    for (const field of type.fields) assertReadableType(field.type, `${path}.${field.name}`, table)
  } else if (type.type === 'list') assertReadableType(type.element, `${path}.element`, table)
  else if (type.type === 'map') {
    assertReadableType(type.key, `${path}.key`, table)
    assertReadableType(type.value, `${path}.value`, table)
  }
}

/** One file's columns, and what else is known of all its rows. */
export interface FileColumns {
  readonly location: string
  /** With field ids; see `withFieldIds`. */
  readonly columns: readonly ParquetColumn[]
  /** Values of identity partition fields by the id of their source column. */
  readonly identityValues: ReadonlyMap<number, Value | null>
}

/** The expression of SQL that makes a column of the table of the columns `p0`, `p1`… of a file. */
export function columnSql(field: Field, file: FileColumns, nameOf: FieldName = nameById): string {
  return new Projection(file.location, file.identityValues, nameOf).member(field, file.columns, (at) => `p${at}`)
}

class Projection {
  readonly #location: string
  readonly #identityValues: ReadonlyMap<number, Value | null>
  readonly #nameOf: FieldName
  #lambdas = 0

  constructor(location: string, identityValues: ReadonlyMap<number, Value | null>, nameOf: FieldName) {
    this.#location = location
    this.#identityValues = identityValues
    this.#nameOf = nameOf
  }

  member(field: Field, columns: readonly ParquetColumn[], sqlAt: (index: number) => string): string {
    const index = columns.findIndex((column) => column.fieldId === field.id)
    const found = columns[index]
    // A column of type unknown is never in a file; one that was promoted from it is missing in old ones.
    if (found === undefined || field.type.type === 'unknown') return this.#missing(field)
    return this.#value(field.type, found.type, sqlAt(index), field.name)
  }

  #value(type: Type, file: ParquetType, sql: string, path: string): string {
    if (type.type === 'struct' && file.type === 'struct') {
      const inner = this.#struct(type, (field) =>
        this.member(field, file.fields, (at) => `struct_extract_at(${sql}, ${at + 1})`),
      )
      return `case when ${sql} is null then null else ${inner} end`
    }
    if (type.type === 'list' && file.type === 'list') {
      return this.#each(sql, (item) => this.#value(type.element, file.element.type, item, `${path}.element`))
    }
    if (type.type === 'map' && file.type === 'map') {
      const keys = this.#each(`map_keys(${sql})`, (item) => this.#value(type.key, file.key.type, item, `${path}.key`))
      const values = this.#each(`map_values(${sql})`, (item) =>
        this.#value(type.value, file.value.type, item, `${path}.value`),
      )
      const same = keys === `map_keys(${sql})` && values === `map_values(${sql})`
      return same ? sql : `map(${keys}, ${values})`
    }
    const promoted = isNested(type) ? undefined : promote(type, file, sql)
    if (promoted !== undefined) return promoted
    throw new IcebergError(
      'parquet_invalid',
      `${this.#location} has ${fileTypeName(file)} in column ${path}, which the table has as ${typeName(type)}.`,
      { details: { location: this.#location, column: path } },
    )
  }

  #struct(type: StructType, member: (field: Field) => string): string {
    if (type.fields.length === 0) {
      throw new IcebergError(
        'scan_unsupported',
        `${this.#location} has a struct without fields, which DuckDB cannot hold.`,
      )
    }
    return `struct_pack(${type.fields.map((f) => `${sqlName(this.#nameOf(f))} := ${member(f)}`).join(', ')})`
  }

  #each(list: string, value: (item: string) => string): string {
    const item = `x${(this.#lambdas += 1)}`
    const sql = value(item)
    return sql === item ? list : `list_transform(${list}, lambda ${item}: ${sql})`
  }

  #missing(field: Field): string {
    const { type } = field
    const identity = this.#identityValues.get(field.id)
    if (identity !== undefined && identity !== null) return sqlValue(type, identity)
    const initial = field.initialDefault
    if (identity === undefined && initial !== undefined && initial !== null) {
      // The default of a struct says only that there is one: its fields have their own.
      if (type.type === 'struct') return this.#struct(type, (inner) => this.#missing(inner))
      return sqlValue(type, valueFromJson(type, initial) as Value)
    }
    if (field.required && type.type !== 'unknown' && identity === undefined) {
      throw new IcebergError(
        'parquet_invalid',
        `${this.#location} has no column for the required field ${field.name} (id ${field.id}), which has no default.`,
        { details: { location: this.#location, fieldId: field.id } },
      )
    }
    return `cast(null as ${sqlType(type, this.#nameOf)})`
  }
}

/** The value of a file as the table's type has it, if the format allows this change of type; else undefined. */
function promote(type: PrimitiveType, file: ParquetType, sql: string): string | undefined {
  if (type.type === 'decimal') {
    const widens = file.type === 'decimal' && file.scale === type.scale && file.precision <= type.precision
    if (!widens) return undefined
    return file.precision === type.precision ? sql : `cast(${sql} as ${sqlType(type)})`
  }
  if (type.type === 'fixed') {
    // DuckDB and others write it as binary; whoever reads the values sees to their length.
    return (file.type === 'fixed' && file.length === type.length) || file.type === 'binary' ? sql : undefined
  }
  if (type.type === file.type) return sql
  return promotions.get(`${file.type} ${type.type}`)?.(sql)
}

const cast = (to: string) => (sql: string) => `cast(${sql} as ${to})`

/** What else than its own type a column may be in a file: promotions of the format, and what other writers do. */
const promotions: ReadonlyMap<string, (sql: string) => string> = new Map([
  ['int long', cast('bigint')],
  ['float double', cast('double')],
  ['date timestamp', cast('timestamp')],
  ['date timestamp_ns', cast('timestamp_ns')],
  // Text that is not marked as such, and bytes that are marked as text.
  ['binary string', (sql) => `decode(${sql})`],
  ['string binary', (sql) => `encode(${sql})`],
  ['fixed binary', (sql) => sql],
  ['fixed uuid', (sql) => `cast(lower(hex(${sql})) as uuid)`],
  ['time_utc time', cast('time')],
  // The session's zone is UTC, so the number is the same. In old files nothing says whether there is a zone.
  ['timestamptz timestamp', cast('timestamp')],
  ['timestamp timestamptz', cast('timestamptz')],
  ['int96 timestamp', cast('timestamp')],
  ['int96 timestamptz', (sql) => `cast(cast(${sql} as timestamp) as timestamptz)`],
])

function fileTypeName(file: ParquetType): string {
  switch (file.type) {
    case 'other':
      return file.text
    case 'int96':
    case 'time_utc':
    case 'struct':
    case 'list':
    case 'map':
      return `a ${file.type}`
    default:
      return typeName(file)
  }
}
