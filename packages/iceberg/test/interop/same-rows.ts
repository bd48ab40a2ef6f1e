import { expect } from 'vitest'
import {
  planContext,
  rowToJson,
  scanRows,
  type DuckDb,
  type PlainJson,
  type SnapshotChoice,
  type Table,
} from '../../src/index.ts'
import type { Engine, Engines, Where } from './engines.ts'

/** The rows of a table as this package reads them, in the words of the engines. */
export async function ourRows(
  table: Table,
  duckDb: DuckDb,
  choice: SnapshotChoice = {},
): Promise<Record<string, PlainJson>[]> {
  const { fields } = planContext(table.metadata, choice).schema
  const rows: Record<string, PlainJson>[] = []
  for await (const batch of scanRows(table.loaded, { ...choice, duckDb })) {
    rows.push(...batch.map((row) => rowToJson(fields, row)))
  }
  return rows
}

export const sorted = (rows: readonly unknown[]): string[] => rows.map((row) => JSON.stringify(row)).toSorted()

/** That another engine reads the same rows as we do: now, in every snapshot, and in every branch and tag. */
export async function expectSameRows(
  engines: Engines,
  engine: Engine,
  where: Where,
  table: Table,
  duckDb: DuckDb,
): Promise<void> {
  const read = await engines.read(engine, where)
  expect(sorted(read.rows), engine).toEqual(sorted(await ourRows(table, duckDb)))
  expect(Object.keys(read.snapshots), engine).toHaveLength(table.metadata.snapshots.length)
  for (const [id, at] of Object.entries(read.snapshots)) {
    const ours = await ourRows(table, duckDb, { snapshotId: BigInt(id) })
    expect(sorted(at.rows), `${engine}, snapshot ${id}`).toEqual(sorted(ours))
  }
  for (const [ref, at] of Object.entries(read.refs)) {
    expect(sorted(at.rows), `${engine}, ${ref}`).toEqual(sorted(await ourRows(table, duckDb, { ref })))
  }
}
