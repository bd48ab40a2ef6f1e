import { sqlText } from './duckdb.ts'

/** A file as SQL reads it, with its own columns and no others. */
export function parquetSource(path: string): string {
  // A path is a pattern to DuckDB: what is special in one is put in brackets. And it makes columns of `x=1/` in it.
  const literal = path.replaceAll(/[[*?]/g, (special) => `[${special}]`)
  // Other writers leave NaN out of a file's statistics, by which DuckDB would decide for all rows that they are lower.
  return `read_parquet(${sqlText(literal)}, hive_partitioning = false, can_have_nan = true)`
}

/** The same as a table whose columns are p0, p1… whatever they are called. */
export function parquetTable(path: string, columnCount: number): string {
  const columns = Array.from({ length: columnCount }, (_, index) => `p${index}`)
  return `${parquetSource(path)} as t(${columns.join(', ')})`
}
