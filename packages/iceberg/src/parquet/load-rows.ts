import { DuckDBDataChunk, INTEGER, type DuckDBConnection, type DuckDBValue } from '@duckdb/node-api'
import type { Field } from '../metadata/type.ts'
import { explained } from './duckdb.ts'
import { duckDbType } from './write-types.ts'
import { rowConverter, type Row } from './write-values.ts'

const chunkRows = 2048

/** Rows as a temporary table of DuckDB: `c0`, `c1`, … for the columns, and `part`, the number `route` gave each row. */
export async function loadRows(
  connection: DuckDBConnection,
  table: string,
  fields: readonly Field[],
  rows: Iterable<Row> | AsyncIterable<Row>,
  route: (row: Row, rowNumber: number) => number,
): Promise<number> {
  const types = [...fields.map((field) => duckDbType(field.type)), INTEGER]
  const columns = types.map((type, index) => `${index === fields.length ? 'part' : `c${index}`} ${type.toString()}`)
  await explained(connection.run(`create temporary table ${table} (${columns.join(', ')})`))
  const convert = rowConverter(fields)
  const appender = await explained(connection.createAppender(table))
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
      pending.push([...convert(row, count), route(row, count)])
      count += 1
      if (pending.length === chunkRows) flush()
    }
    flush()
  } finally {
    appender.closeSync()
  }
  return count
}
