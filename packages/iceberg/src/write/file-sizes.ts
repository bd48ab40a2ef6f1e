import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { IcebergError } from '../errors.ts'
import type { FileContent } from '../manifests/content-file.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import type { Field } from '../metadata/type.ts'
import { explained } from '../parquet/duckdb.ts'
import { newRows } from '../parquet/load-rows.ts'
import { writeParquetFile, type WriteFileOptions } from '../parquet/write-file.ts'

// Only a written file tells how small its rows become. So rows whose plain values fit into the target go into one file
// without further ado. Of others a row group is written aside and measured, and every file that is written after that
// corrects the measure for the next.

/** Rows of one row group, as DuckDB makes them. */
const measuredRows = 122_880
/** As in Java, which looks at the size of a file every so many rows. */
const leastRows = 1000

/** How large a table wants its files. */
export function targetFileBytes({ properties, location }: TableMetadata, content: FileContent): number {
  const [name, otherwise] =
    content === 'data'
      ? ['write.target-file-size-bytes', 512 * 1024 * 1024]
      : ['write.delete.target-file-size-bytes', 64 * 1024 * 1024]
  const bytes = Number(properties[name] ?? otherwise)
  if (bytes > 0) return bytes
  throw new IcebergError('metadata_invalid', `${name} of the table at ${location} is not a number of bytes`)
}

export interface PartSize {
  readonly rows: number
  /** Of the values as they are: neither encoded nor compressed. */
  readonly plainBytes: number
}

/** What the parts of loaded rows amount to, by their numbers. */
export async function partSizes(
  connection: DuckDBConnection,
  fields: readonly Field[],
): Promise<Map<number, PartSize>> {
  const bytes = fields.map((field, index) => plainBytes(field, `c${index}`)).join(' + ')
  const sql = `select part, count(*)::double, sum(${bytes})::double from ${newRows} group by part`
  const rows = (await explained(connection.runAndReadAll(sql))).getRows()
  return new Map(rows.map(([part, count, sum]) => [Number(part), { rows: Number(count), plainBytes: Number(sum) }]))
}

function plainBytes({ type }: Field, value: string): string {
  switch (type.type) {
    case 'boolean':
      return '1'
    case 'int':
    case 'float':
    case 'date':
      return '4'
    case 'decimal':
    case 'uuid':
      return '16'
    case 'string':
      return `(4 + coalesce(strlen(${value}), 0))`
    case 'binary':
      return `(4 + coalesce(octet_length(${value}), 0))`
    case 'struct':
    case 'list':
    case 'map':
      return `(8 + coalesce(strlen(${value}::varchar), 0))`
    default:
      return '8'
  }
}

/** The bytes of a row of this select in Parquet, by its first rows. */
export async function measuredRowBytes(
  connection: DuckDBConnection,
  select: string,
  rows: number,
  options: WriteFileOptions,
): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-measure-'))
  try {
    const measured = Math.min(rows, measuredRows)
    const path = join(folder, 'rows.parquet')
    const { fileSizeInBytes } = await writeParquetFile(connection, `${select} limit ${measured}`, path, options)
    return fileSizeInBytes / measured
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** How many of the rows that are left the next file gets: as many as each of the files that they fill. */
export function rowsOfNextFile(left: number, rowBytes: number, targetBytes: number, maxRows: number): number {
  const files = Math.max(1, Math.ceil((left * rowBytes) / targetBytes))
  return Math.min(left, maxRows, Math.max(leastRows, Math.ceil(left / files)))
}
