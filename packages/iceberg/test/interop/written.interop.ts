import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTable, DuckDb, JdbcCatalog } from '../../src/index.ts'
import { startEngines, type Engines } from './engines.ts'
import { createDatabase, jdbcProperties } from './jdbc-database.ts'
import { expectSameRows, ourRows, sorted } from './same-rows.ts'
import { writtenTables } from './written-tables.ts'

// Tables that this package writes, read by Spark, Iceberg's Java and PyIceberg: every snapshot, branch and tag. Then
// those append and delete, and this package reads.

let engines: Engines
let folder: string
let pool: pg.Pool
let catalog: JdbcCatalog
let duckdb: DuckDb

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-written-'))
  const url = await createDatabase('written')
  pool = new pg.Pool({ connectionString: url.href })
  catalog = await JdbcCatalog.open({ name: 'ours', database: pool, warehouse: folder })
  await catalog.createNamespace(['ns'])
  duckdb = await DuckDb.open({ threads: 1 })
  engines = startEngines()
  const { spark, pyiceberg } = jdbcProperties(url)
  await engines.catalog('ours', {
    spark: { ...spark, warehouse: folder, 'cache-enabled': 'false' },
    pyiceberg: { ...pyiceberg, warehouse: `file://${folder}` },
  })
})

afterAll(async () => {
  await engines.close()
  await duckdb.close()
  await pool.end()
  await rm(folder, { recursive: true, force: true })
})

test.each(Object.entries(writtenTables))('others read %s as we do', async (name, { table: made, write, readBy }) => {
  const table = await createTable(catalog, { namespace: ['ns'], name }, made, { duckDb: duckdb })
  await write(table)
  expect((await ourRows(table, duckdb)).length).toBeGreaterThan(0)
  for (const engine of readBy) {
    await expectSameRows(engines, engine, { catalog: 'ours', table: `ns.${name}` }, table, duckdb)
  }
})

test.each(['plain_v1', 'plain_v2', 'plain_v3', 'by_bucket', 'by_day', 'position_deletes_by_file', 'deletion_vectors'])(
  'Spark appends to and deletes from %s, and we read and go on',
  async (name) => {
    const table = await createTable(
      catalog,
      { namespace: ['ns'], name: `${name}_more` },
      writtenTables[name]?.table ?? never(),
      {
        duckDb: duckdb,
      },
    )
    await writtenTables[name]?.write(table)
    const at = `ours.ns.${name}_more`
    if (table.metadata.formatVersion > 1) {
      await engines.sql(`alter table ${at} set tblproperties ('write.delete.mode' = 'merge-on-read')`)
    }
    await engines.sql(
      `insert into ${at} values (900, 'spark', date '2024-02-29', timestamp '2024-02-29 12:00:00', 1.5)`,
    )
    await engines.sql(`delete from ${at} where id in (2, 3)`)
    const bySpark = await engines.read('spark', { catalog: 'ours', table: `ns.${name}_more` })
    await table.refresh()
    expect(sorted(await ourRows(table, duckdb))).toEqual(sorted(bySpark.rows))
    await table.append([{ id: 901n, p: 'after' }])
    const again = await engines.read('spark', { catalog: 'ours', table: `ns.${name}_more` })
    expect(sorted(await ourRows(table, duckdb))).toEqual(sorted(again.rows))
    expect(again.rows.length).toBe(bySpark.rows.length + 1)
  },
)

test.each([1, 2] as const)(
  'PyIceberg appends to and deletes from a table of v%i, and we read',
  async (formatVersion) => {
    const name = `pyiceberg_v${formatVersion}`
    const fields = [
      { id: 1, name: 'id', required: false, type: { type: 'long' } as const },
      { id: 2, name: 's', required: false, type: { type: 'string' } as const },
    ]
    const made = { schema: { fields }, formatVersion }
    const table = await createTable(catalog, { namespace: ['ns'], name }, made, { duckDb: duckdb })
    await table.append([
      { id: 1n, s: 'ours' },
      { id: 2n, s: 'ours' },
    ])
    await engines.append('ours', `ns.${name}`, [{ id: 3, s: 'theirs' }])
    await engines.delete('ours', `ns.${name}`, 'id = 1')
    await table.refresh()
    const theirs = await engines.read('pyiceberg', { catalog: 'ours', table: `ns.${name}` })
    expect(sorted(await ourRows(table, duckdb))).toEqual(sorted(theirs.rows))
    expect(theirs.rows).toHaveLength(2)
  },
)

test('Spark would sort our files as they are sorted', async () => {
  const { table: made, write } = writtenTables['sorted_by_transforms'] ?? never()
  const table = await createTable(catalog, { namespace: ['ns'], name: 'in_order' }, made, { duckDb: duckdb })
  await write(table)
  const bySpark = `ours.system.bucket(4, id) desc nulls first, ours.system.truncate(1, p) asc nulls last,
    ours.system.days(at) desc nulls last, ours.system.years(day) asc nulls first, id asc nulls first`
  const read = (order: string) => engines.sql(`select id from ours.ns.in_order order by _file, ${order}`)
  const asWritten = await read('_pos')
  expect(asWritten).toHaveLength(53)
  expect(asWritten).toEqual(await read(bySpark))
})

function never(): never {
  throw new Error('no such table')
}
