import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { createTable, DuckDb, JdbcCatalog, RestCatalog, tableFacts, type Catalog, type Table } from '../../src/index.ts'
import { startEngines, type Engines } from './engines.ts'
import { createDatabase, jdbcProperties } from './jdbc-database.ts'
import { startRestCatalog } from './rest-catalog-server.ts'
import { s3Address, s3Properties, startS3, type S3Server } from './s3-server.ts'
import { expectSameRows, ourRows, sorted } from './same-rows.ts'
import { closedAfterAll } from './server-process.ts'
import { writtenTables } from './written-tables.ts'

// Rows that are written to S3 and read from there, through each catalog, by this package and by the engines.

type Properties = Record<string, string>
const opened = closedAfterAll()
const catalogs = new Map<string, Catalog>()
let s3: S3Server
let engines: Engines
let duckdb: DuckDb

beforeAll(async () => {
  s3 = opened(await startS3({ buckets: ['lake'] }))
  duckdb = opened(await DuckDb.open({ threads: 1 }))
  engines = opened(startEngines())
  await openJdbc()
  await openRest()
  for (const catalog of catalogs.values()) await catalog.createNamespace(['ns'])
})

async function openJdbc(): Promise<void> {
  const url = await createDatabase('lake')
  const warehouse = 's3://lake/jdbc'
  const properties = s3Properties(s3)
  const catalog = opened(await JdbcCatalog.open({ name: 'jdbc', database: url.href, warehouse, properties }))
  const { spark, pyiceberg } = jdbcProperties(url)
  await know('jdbc', catalog, {
    spark: { ...spark, warehouse, ...properties },
    pyiceberg: { ...pyiceberg, warehouse, ...properties },
  })
}

// The keys are vended: nobody but the server is given them.
async function openRest(): Promise<void> {
  const server = opened(await startRestCatalog({ warehouse: 's3://lake/rest', s3, vendCredentials: true }))
  const properties = s3Address(s3)
  const theirs = { type: 'rest', uri: server.uri, ...properties }
  const catalog = await RestCatalog.open({ name: 'rest', url: server.uri, properties })
  await know('rest', catalog, { spark: theirs, pyiceberg: theirs })
}

async function know(
  name: string,
  catalog: Catalog,
  theirs: { spark: Properties; pyiceberg: Properties },
): Promise<void> {
  catalogs.set(name, catalog)
  const spark = { 'io-impl': 'org.apache.iceberg.aws.s3.S3FileIO', 'cache-enabled': 'false', ...theirs.spark }
  await engines.catalog(name, { ...theirs, spark })
}

async function make(catalogName: string, form: string, name: string): Promise<Table> {
  const { table, write } = writtenTables[form] ?? never()
  const catalog = catalogs.get(catalogName) ?? never()
  const made = await createTable(catalog, { namespace: ['ns'], name }, table, { duckDb: duckdb })
  await write(made)
  return made
}

const forms = (
  'plain_v1 types_v3 by_identity by_day position_deletes_by_file position_deletes_by_partition deletion_vectors ' +
  'upgraded_deletes equality_deletes_v2 equality_deletes_v3 overwrites evolution defaults refs'
).split(' ')

describe.each(['jdbc', 'rest'])('a table on S3 in the %s catalog', (catalog) => {
  test.each(forms)('%s is written, scanned, and read by others as we do', async (form) => {
    const table = await make(catalog, form, form)
    const rows = await ourRows(table, duckdb)
    expect(rows.length).toBeGreaterThan(0)
    // Through a catalog that has nothing in memory of it.
    const again = await (catalogs.get(catalog) ?? never()).loadTable({ namespace: ['ns'], name: form })
    expect(again.metadata.currentSnapshotId).toBe(table.metadata.currentSnapshotId)
    for (const engine of writtenTables[form]?.readBy ?? []) {
      await expectSameRows(engines, engine, { catalog, table: `ns.${form}` }, table, duckdb)
    }
  })

  test('its facts are counted, and every file of it is where it says', async () => {
    const table = await make(catalog, 'deletion_vectors', 'counted')
    const facts = await tableFacts(table.loaded)
    expect(facts.dataFiles.files).toBe(3)
    expect(facts.deleteFiles.vectors).toBe(3)
    expect(facts.snapshots.count).toBe(4)
    const listed: string[] = []
    for await (const { location } of table.loaded.storage.list(table.metadata.location)) listed.push(location)
    const kinds = listed.map((location) => /\.(metadata\.json|avro|parquet|puffin)$/.exec(location)?.[1] ?? location)
    expect([...new Set(kinds)].toSorted()).toEqual(['avro', 'metadata.json', 'parquet', 'puffin'])
  })

  test.each(['plain_v2', 'deletion_vectors'])('Spark writes to %s, and we read and go on', async (form) => {
    const name = `${form}_more`
    const table = await make(catalog, form, name)
    const at = `${catalog}.ns.${name}`
    await engines.sql(`alter table ${at} set tblproperties ('write.delete.mode' = 'merge-on-read')`)
    await engines.sql(
      `insert into ${at} values (900, 'spark', date '2024-02-29', timestamp '2024-02-29 12:00:00', 1.5)`,
    )
    await engines.sql(`delete from ${at} where id in (2, 3)`)
    await table.refresh()
    const where = { catalog, table: `ns.${name}` }
    await expectSameRows(engines, 'spark', where, table, duckdb)
    await table.append([{ id: 901n, p: 'after' }])
    await expectSameRows(engines, 'spark', where, table, duckdb)
    expect(sorted(await ourRows(table, duckdb)).some((row) => row.includes('after'))).toBe(true)
  })

  test('PyIceberg appends and deletes, and we read', async () => {
    const fields = [
      { id: 1, name: 'id', required: false, type: { type: 'long' } as const },
      { id: 2, name: 's', required: false, type: { type: 'string' } as const },
    ]
    const identifier = { namespace: ['ns'], name: 'shared' }
    const made = { schema: { fields } }
    const table = await createTable(catalogs.get(catalog) ?? never(), identifier, made, { duckDb: duckdb })
    await table.append([
      { id: 1n, s: 'ours' },
      { id: 2n, s: 'ours' },
    ])
    await engines.append(catalog, 'ns.shared', [{ id: 3, s: 'theirs' }])
    await engines.delete(catalog, 'ns.shared', 'id = 1')
    await table.refresh()
    expect(sorted(await ourRows(table, duckdb))).toEqual(['{"id":"2","s":"ours"}', '{"id":"3","s":"theirs"}'])
    await expectSameRows(engines, 'pyiceberg', { catalog, table: 'ns.shared' }, table, duckdb)
  })
})

test('nothing is left behind: no trial objects in the bucket, no copies on this disk', async () => {
  const keys = await readdir(join(s3.root, 'lake'), { recursive: true })
  expect(keys.filter((key) => key.includes('.fencepost-'))).toEqual([])
  const own = new RegExp(`^fencepost-(staging|write|deletes)-${process.pid}-`)
  const staged = (await readdir(tmpdir())).filter((name) => own.test(name))
  expect(staged).toEqual([])
})

function never(): never {
  throw new Error('no such table or catalog')
}
