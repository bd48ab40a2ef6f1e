import {
  BLOB,
  BOOLEAN,
  DOUBLE,
  DuckDBBlobValue,
  DuckDBDataChunk,
  HUGEINT,
  INTEGER,
  VARCHAR,
  type DuckDBConnection,
  type DuckDBType,
  type DuckDBValue,
} from '@duckdb/node-api'
import type { Field, PrimitiveType } from '../schema/type.ts'
import type { Value } from '../values/value.ts'
import { explained } from './duckdb.ts'
import { duckDbType } from './write-types.ts'
import { rowConverter, type Row } from './write-values.ts'

/** The temporary table that rows are loaded into. */
export const newRows = 'new_rows'

const chunkRows = 2048

/** A value made of each row, to sort by. */
export interface RowKey {
  readonly type: PrimitiveType
  readonly of: (row: Row) => Value | null
}

/**
 * Rows as the table `new_rows` of a connection: `c0`, `c1`, … for the columns, `part`, the number `route` gave each row,
 * and `k0`, `k1`, … for the keys. In SQL their names need that of the table: a column of the rows may be called so, too.
 */
export async function loadRows(
  connection: DuckDBConnection,
  fields: readonly Field[],
  rows: Iterable<Row> | AsyncIterable<Row>,
  route: (row: Row, rowNumber: number) => number,
  keys: readonly RowKey[] = [],
): Promise<void> {
  const columns = [
    ...fields.map(({ type }, index) => ({ name: `c${index}`, type: duckDbType(type) })),
    { name: 'part', type: INTEGER },
    ...keys.map(({ type }, index) => ({ name: `k${index}`, type: keyType(type) })),
  ]
  const types = columns.map(({ type }) => type)
  const definitions = columns.map(({ name, type }) => `${name} ${type.toString()}`)
  await explained(connection.run(`create temporary table ${newRows} (${definitions.join(', ')})`))
  const convert = rowConverter(fields)
  const appender = await explained(connection.createAppender(newRows))
  let pending: DuckDBValue[][] = []
  let count = 0
  const flush = (): void => {
    if (pending.length === 0) return
    const chunk = DuckDBDataChunk.create(types)
    chunk.setRows(pending)
    appender.appendDataChunk(chunk)
    pending = []
  }
  try {
    for await (const row of rows) {
      pending.push([...convert(row, count), route(row, count), ...keys.map((key) => keyValue(key.of(row)))])
      count += 1
      if (pending.length === chunkRows) flush()
    }
    flush()
  } finally {
    appender.closeSync()
  }
}

/** A type that has the order of the values. Whole numbers get room: a decimal that is cut may grow by a digit. */
function keyType({ type }: PrimitiveType): DuckDBType {
  switch (type) {
    case 'boolean':
      return BOOLEAN
    case 'int':
    case 'date':
      return INTEGER
    case 'float':
    case 'double':
      return DOUBLE
    case 'string':
    case 'uuid':
      return VARCHAR
    case 'fixed':
    case 'binary':
      return BLOB
    default:
      return HUGEINT
  }
}

function keyValue(value: Value | null): DuckDBValue {
  return value instanceof Uint8Array ? new DuckDBBlobValue(value) : value
}
