import { BIGINT, DuckDBDataChunk, type DuckDBConnection } from '@duckdb/node-api'
import { execute, explained } from '../../parquet/duckdb.ts'
import { valueReader } from '../../scan/row-value.ts'
import type { PrimitiveType } from '../../schema/type.ts'
import type { Value } from '../../values/value.ts'

// Partitions and buckets are made by the transforms of this package, not by SQL of DuckDB's, so that they are those of
// every other file. So that not every row goes through JavaScript, only the distinct values do, some at a time.

/** A value of the rows, as SQL over the table `r`. */
export interface KeySource {
  readonly sql: string
  readonly type: PrimitiveType
}

const valuesAtATime = 50_000
const rowsOfChunk = 2048

/** Gives every combination of values a number. Returns the join of `r` that has it as the column `key` of `name`. */
export async function keyTable(
  connection: DuckDBConnection,
  name: string,
  rows: string,
  sources: readonly KeySource[],
  keyOf: (values: readonly (Value | null)[]) => number | null,
): Promise<string> {
  const parts = sources.flatMap(({ sql, type }, index) => [
    { name: `v${index}`, sql },
    // DuckDB takes both zeros for one value, and they are two partitions.
    ...(isFloat(type) ? [{ name: `z${index}`, sql: `signbit(${sql})` }] : []),
  ])
  const columns = [...parts.map((part) => `${part.sql} as ${part.name}`), '0 as v'].join(', ')
  await execute(connection, `create temp table ${name}_values as select distinct ${columns} from ${rows} r`)
  await execute(connection, `create temp table ${name}_keys (n bigint, key bigint)`)
  const readers = sources.map(({ type }) => valueReader(type))
  const selected = [...sources.map((_, index) => `v${index}`), 'rowid'].join(', ')
  const appender = await explained(connection.createAppender(`${name}_keys`, 'main', 'temp'))
  try {
    for (let from = 0; ; from += valuesAtATime) {
      const sql = `select ${selected} from ${name}_values where rowid >= ${from} and rowid < ${from + valuesAtATime}`
      const found = (await explained(connection.runAndReadAll(sql))).getRows()
      if (found.length === 0) break
      const keys = found.map((values) => {
        const key = keyOf(readers.map((read, index) => read(values[index] ?? null) as Value | null))
        return [values.at(-1) ?? null, key === null ? null : BigInt(key)]
      })
      for (let at = 0; at < keys.length; at += rowsOfChunk) {
        const chunk = DuckDBDataChunk.create([BIGINT, BIGINT])
        chunk.setRows(keys.slice(at, at + rowsOfChunk))
        appender.appendDataChunk(chunk)
      }
    }
  } finally {
    appender.closeSync()
  }
  await execute(
    connection,
    `create temp table ${name} as select d.* exclude (v), k.key from ${name}_values d join ${name}_keys k on k.n = d.rowid`,
  )
  await execute(connection, `drop table ${name}_values`)
  await execute(connection, `drop table ${name}_keys`)
  const conditions = parts.map((part) => `${part.sql} is not distinct from ${name}.${part.name}`)
  return `join ${name} on ${conditions.length === 0 ? 'true' : conditions.join(' and ')}`
}

function isFloat({ type }: PrimitiveType): boolean {
  return type === 'float' || type === 'double'
}
