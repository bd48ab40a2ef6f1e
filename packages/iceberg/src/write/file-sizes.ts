import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import type { FileContent } from '../manifests/content-file.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import type { Field } from '../schema/type.ts'
import { explained } from '../parquet/duckdb.ts'
import { newRows } from '../parquet/load-rows.ts'
import { writeParquetFile, type WriteFileOptions } from '../parquet/write-file.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { temporaryFolder } from '../storage/temporary-folder.ts'

// Only a written file tells how small its rows become. So rows whose plain values fit into the target go into one file
// without further ado. Of others about a row group is written aside and measured. Where a file turns out larger than
// that, the next ones get fewer rows; where it is smaller they do not get more, as wider rows may follow.

/** Rows of one row group, as DuckDB makes them. */
const measuredRows = 122_880
/** Rows that are measured together: what is alike beside each other becomes smaller. */
const runRows = 2048
/** As in Java, which looks at the size of a file every so many rows. */
const leastRows = 1000

/** How large a table wants its files. */
export function targetFileBytes(metadata: TableMetadata, content: FileContent): number {
  const { targetFileBytes: ofData, targetDeleteFileBytes: ofDeletes } = tableProperties
  return propertyOf(metadata, content === 'data' ? ofData : ofDeletes)
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
  const sizes = fields.map((field, index) => plainBytes(field, `c${index}`))
  const fixed = sizes.reduce((sum, size) => sum + size.fixed, 0)
  const sums = sizes.flatMap(({ varying }) => (varying === undefined ? [] : [`, sum(${varying})::double`]))
  const sql = `select part, count(*)::double${sums.join('')} from ${newRows} group by part`
  const rows = (await explained(connection.runAndReadAll(sql))).getRows()
  return new Map(
    rows.map(([part, count, ...varying]) => {
      const plain = varying.reduce<number>((sum, bytes) => sum + Number(bytes ?? 0), Number(count) * fixed)
      return [Number(part), { rows: Number(count), plainBytes: plain }]
    }),
  )
}

/** How large values of a column are: all alike, and as SQL what each has beyond that. */
function plainBytes({ type }: Field, value: string): { fixed: number; varying?: string } {
  switch (type.type) {
    case 'boolean':
      return { fixed: 1 }
    case 'int':
    case 'float':
    case 'date':
      return { fixed: 4 }
    case 'decimal':
    case 'uuid':
      return { fixed: 16 }
    case 'string':
      return { fixed: 4, varying: `strlen(${value})` }
    case 'binary':
      return { fixed: 4, varying: `octet_length(${value})` }
    case 'struct':
    case 'list':
    case 'map':
      return { fixed: 8, varying: `strlen(${value}::varchar)` }
    default:
      return { fixed: 8 }
  }
}

/** The bytes of a row of a table in Parquet, by runs of rows from all over it. */
export async function measuredRowBytes(
  connection: DuckDBConnection,
  table: string,
  rows: number,
  options: WriteFileOptions,
): Promise<number> {
  const folder = await temporaryFolder('measure')
  try {
    const every = Math.ceil(rows / measuredRows)
    const select = `from ${table} where (rowid // ${runRows}) % ${every} = 0`
    const written = await writeParquetFile(connection, select, join(folder, 'rows.parquet'), options)
    return written.fileSizeInBytes / written.recordCount
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** How many of the rows that are left the next file gets: as many as each of the files that they fill. */
export function rowsOfNextFile(left: number, rowBytes: number, targetBytes: number, maxRows: number): number {
  const files = Math.max(1, Math.ceil((left * rowBytes) / targetBytes))
  return Math.min(left, maxRows, Math.max(leastRows, Math.ceil(left / files)))
}
