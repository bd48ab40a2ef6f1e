import {
  BIGINT,
  BLOB,
  BOOLEAN,
  DATE,
  DECIMAL,
  DOUBLE,
  FLOAT,
  INTEGER,
  LIST,
  MAP,
  STRUCT,
  TIME,
  TIMESTAMP,
  TIMESTAMP_NS,
  TIMESTAMPTZ,
  UUID,
  VARCHAR,
  type DuckDBType,
} from '@duckdb/node-api'
import { IcebergError } from '../errors.ts'
import { childrenOf, fieldsById, type Schema } from '../schema/schema.ts'
import { isNested, typeName, type Field, type Type } from '../schema/type.ts'
import { sqlName } from './duckdb.ts'

// DuckDB writes the other types exactly. These it would alter without a word, so they are refused before anything is
// written: another engine must write tables that have them.
const refused: Partial<Record<Type['type'], string>> = {
  fixed: 'DuckDB would write it as binary, of any length',
  timestamptz_ns: 'DuckDB would cut it to microseconds',
  variant: 'DuckDB would write it as a plain struct',
  geometry: 'DuckDB would not write it as the format wants',
  geography: 'DuckDB would not write it as the format wants',
  unknown: 'there is no Parquet column for it',
}

/** The types whose values this package does not write, with the reason. */
export const unwritableTypes: Readonly<Partial<Record<Type['type'], string>>> = refused

/** Refuses columns that could not be written exactly, before anything is. `table` is for the message. */
export function assertWritableColumns(schema: Pick<Schema, 'fields'>, table: string): void {
  for (const field of fieldsById(schema).values()) {
    const reason = refused[field.type.type]
    if (reason !== undefined) {
      throw new IcebergError(
        'type_unsupported',
        `${table} cannot be written: column ${field.path.join('.')} is ${typeName(field.type)}, and ${reason}. ` +
          'Write this table with another engine.',
        { details: { table, column: field.path.join('.'), type: typeName(field.type) } },
      )
    }
  }
  assertNames(schema.fields, '', table)
}

/** DuckDB finds columns without regard to case, so two names that differ in nothing else are one to it. */
function assertNames(fields: readonly Field[], parent: string, table: string): void {
  const seen = new Map<string, string>()
  for (const { name, type } of fields) {
    const path = parent === '' ? name : `${parent}.${name}`
    const other = seen.get(name.toLowerCase())
    if (other !== undefined) {
      throw new IcebergError(
        'type_unsupported',
        `${table} cannot be written: the columns ${other} and ${path} differ in case only, which DuckDB cannot keep ` +
          'apart. Rename one of them, or write this table with another engine.',
        { details: { table, column: path } },
      )
    }
    seen.set(name.toLowerCase(), path)
    if (name === '') {
      throw new IcebergError('type_unsupported', `${table} cannot be written: a column in "${parent}" has no name`)
    }
    if (isNested(type)) assertNames(childrenOf(type), path, table)
  }
}

/** The DuckDB type of a column. Only for types that `assertWritableColumns` lets pass. */
export function duckDbType(type: Type): DuckDBType {
  switch (type.type) {
    case 'struct':
      return STRUCT(Object.fromEntries(type.fields.map((field) => [field.name, duckDbType(field.type)])))
    case 'list':
      return LIST(duckDbType(type.element))
    case 'map':
      return MAP(duckDbType(type.key), duckDbType(type.value))
    case 'decimal':
      return DECIMAL(type.precision, type.scale)
    default:
      return plainType(type.type)
  }
}

function plainType(name: string): DuckDBType {
  const types: Record<string, DuckDBType> = {
    boolean: BOOLEAN,
    int: INTEGER,
    long: BIGINT,
    float: FLOAT,
    double: DOUBLE,
    date: DATE,
    time: TIME,
    timestamp: TIMESTAMP,
    timestamptz: TIMESTAMPTZ,
    timestamp_ns: TIMESTAMP_NS,
    string: VARCHAR,
    uuid: UUID,
    binary: BLOB,
  }
  const found = types[name]
  if (found === undefined) throw new IcebergError('type_unsupported', `A value of type ${name} cannot be written`)
  return found
}

/** The field ids of a COPY, at every level: {"id": 1, "tags": {__duckdb_field_id: 2, element: 3}}. */
export function fieldIds(fields: readonly Field[]): string {
  const members = fields.map((field) => `${sqlName(field.name)}: ${fieldId(field)}`)
  return `{${members.join(', ')}}`
}

function fieldId(field: Field): string {
  const children = childrenOf(field.type)
  if (children.length === 0) return String(field.id)
  return `{__duckdb_field_id: ${field.id}, ${fieldIds(children).slice(1)}`
}
