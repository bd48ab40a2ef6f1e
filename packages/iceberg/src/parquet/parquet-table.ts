import { sqlText } from './duckdb.ts'

/** A file as SQL reads it, with its own columns and no others. */
export function parquetSource(path: string): string {
  return source(literal(path))
}

// A path is a pattern to DuckDB: what is special in one is put in brackets. And it makes columns of `x=1/` in it.
function literal(path: string): string {
  return sqlText(path.replaceAll(/[[*?]/g, (special) => `[${special}]`))
}

// Other writers leave NaN out of a file's statistics, by which DuckDB would decide for all rows that they are lower.
function source(files: string): string {
  return `read_parquet(${files}, hive_partitioning = false, can_have_nan = true)`
}

/** The same as a table whose columns are p0, p1… whatever they are called. */
export function parquetTable(path: string, columnCount: number): string {
  return `${parquetSource(path)} as t(${columnNames(columnCount)})`
}

/** Many files of the same columns as one table. `file_index` is the place of a row's file among the paths. */
export function parquetTables(paths: readonly string[], columnCount: number): string {
  return `${source(`[${paths.map(literal).join(', ')}]`)} as t(${columnNames(columnCount)})`
}

function columnNames(count: number): string {
  return Array.from({ length: count }, (_, index) => `p${index}`).join(', ')
}
