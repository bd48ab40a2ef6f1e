import type { DuckDBConnection } from '@duckdb/node-api'
import { LocalStorage } from '../storage/local-storage.ts'
import { explained, sqlName } from './duckdb.ts'
import { readFooter } from './footer.ts'

// DuckDB's dictionaries take -0.0 and 0.0 for one value: a column that has both, and few others, comes back with one of
// them in all places.

const dictionaries = new Set(['PLAIN_DICTIONARY', 'RLE_DICTIONARY'])

/** Whether a file that was just written of a select has 0.0 where the select has -0.0. */
export async function losesMinusZero(connection: DuckDBConnection, select: string, path: string): Promise<boolean> {
  const columns = await suspectColumns(path)
  if (columns.size === 0) return false
  const tests = [...columns].map(([name, isNested]) => {
    const column = sqlName(name)
    return isNested ? `contains(cast(${column} as varchar), '-0.0')` : `(${column} = 0 and signbit(${column}))`
  })
  const sql = `select 1 from (${select}) where ${tests.join(' or ')} limit 1`
  return (await explained(connection.runAndReadAll(sql))).currentRowCount > 0
}

/** The columns at the top with a dictionary of floats that a zero may be in, and whether the floats are deeper. */
async function suspectColumns(path: string): Promise<Map<string, boolean>> {
  const local = new LocalStorage()
  const source = { location: path, size: await local.size(path), read: local.read.bind(local, path) }
  const { metadata } = await readFooter(source)
  const found = new Map<string, boolean>()
  for (const { meta_data: chunk } of metadata.row_groups.flatMap((group) => group.columns)) {
    const isFloat = chunk?.type === 'FLOAT' || chunk?.type === 'DOUBLE'
    if (!isFloat || !chunk.encodings.some((encoding) => dictionaries.has(encoding))) continue
    const { min_value: least, max_value: most } = chunk.statistics ?? {}
    if ((typeof least === 'number' && least > 0) || (typeof most === 'number' && most < 0)) continue
    const [name] = chunk.path_in_schema
    if (name !== undefined) found.set(name, chunk.path_in_schema.length > 1)
  }
  return found
}
