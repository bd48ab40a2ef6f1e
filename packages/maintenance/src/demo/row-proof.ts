import { createHash } from 'node:crypto'
import { openTable, type Catalog, type DuckDb, type TableIdentifier } from '@fencepost/iceberg'

/** What stays the same as long as the rows of a table do: their number, and a sum over all of them in any order. */
export interface RowProof {
  readonly rows: number
  /** Sixteen hexadecimal digits. */
  readonly checksum: string
}

/** Reads every row of a table. */
export async function proveRows(catalog: Catalog, identifier: TableIdentifier, duckDb: DuckDb): Promise<RowProof> {
  const table = await openTable(catalog, identifier, { duckDb })
  let rows = 0
  let sum = 0n
  for await (const batch of table.scan()) {
    rows += batch.length
    for (const row of batch) sum = BigInt.asUintN(64, sum + hashOf(row))
  }
  return { rows, checksum: sum.toString(16).padStart(16, '0') }
}

function hashOf(row: unknown): bigint {
  const text = JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))
  return createHash('sha256').update(text).digest().readBigUInt64BE(0)
}
