import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEngines } from './engines.ts'
import { createDatabase, jdbcProperties } from './jdbc-database.ts'
import type { Engines } from './engines.ts'
import { placeGolden, readGolden } from './golden-files.ts'
import { startRestCatalog } from './rest-catalog-server.ts'
import { startS3 } from './s3-server.ts'

let engines: Engines
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-engines-'))
  engines = startEngines()
})

afterAll(async () => {
  await engines.close()
  await rm(folder, { recursive: true, force: true })
})

test.each(['position-deletes-by-partition', 'pyiceberg-evolution'])(
  'the golden table %s is read as it was',
  async (name) => {
    const golden = await readGolden(name)
    const remove = await placeGolden(name)
    try {
      for (const engine of [golden.read_by, ...golden.agreed_by]) {
        const { rows, snapshots } = await engines.read(engine, { metadata: join(golden.location, golden.metadata) })
        expect({ rows, snapshots }, engine).toEqual({ rows: golden.rows, snapshots: golden.snapshots })
      }
    } finally {
      await remove()
    }
  },
)

test('what one engine writes into a REST catalog on S3, the other reads, appends to and deletes from', async () => {
  const s3 = await startS3({ buckets: ['lake'] })
  const catalog = await startRestCatalog({ warehouse: 's3://lake/warehouse', s3 })
  try {
    const keys = {
      's3.endpoint': s3.endpoint,
      's3.access-key-id': s3.accessKeyId,
      's3.secret-access-key': s3.secretAccessKey,
    }
    const spark = {
      'io-impl': 'org.apache.iceberg.aws.s3.S3FileIO',
      's3.path-style-access': 'true',
      'client.region': s3.region,
    }
    await engines.catalog('lake', {
      spark: { type: 'rest', uri: catalog.uri, ...keys, ...spark },
      pyiceberg: { type: 'rest', uri: catalog.uri, ...keys, 's3.region': s3.region },
    })
    await engines.sql('create namespace lake.ns')
    await engines.sql('create table lake.ns.t (id bigint, s string) using iceberg')
    await engines.sql("insert into lake.ns.t values (1, 'spark'), (2, 'spark')")
    await engines.append('lake', 'ns.t', [{ id: 3, s: 'pyiceberg' }])
    await engines.delete('lake', 'ns.t', 'id = 1')
    const rows = [
      { id: '2', s: 'spark' },
      { id: '3', s: 'pyiceberg' },
    ]
    for (const engine of ['spark', 'java', 'pyiceberg'] as const) {
      const read = await engines.read(engine, { catalog: 'lake', table: 'ns.t' })
      expect(read.rows, engine).toEqual(rows)
      expect(Object.keys(read.snapshots).length, engine).toBeGreaterThan(2)
    }
  } finally {
    await catalog.close()
    await s3.close()
  }
})

test('both engines share the tables of a JDBC catalog on Postgres', async () => {
  const { spark, pyiceberg } = jdbcProperties(await createDatabase('iceberg'))
  const warehouse = join(folder, 'jdbc')
  await engines.catalog('pg', {
    spark: { ...spark, warehouse },
    pyiceberg: { ...pyiceberg, warehouse: `file://${warehouse}` },
  })
  await engines.sql('create namespace pg.ns')
  await engines.sql('create table pg.ns.t (id bigint, s string) using iceberg')
  await engines.append('pg', 'ns.t', [{ id: 1, s: 'pyiceberg' }])
  await engines.sql("insert into pg.ns.t values (2, 'spark')")
  await engines.delete('pg', 'ns.t', 'id = 1')
  for (const engine of ['spark', 'pyiceberg'] as const) {
    expect((await engines.read(engine, { catalog: 'pg', table: 'ns.t' })).rows, engine).toEqual([
      { id: '2', s: 'spark' },
    ])
  }
})

test('Spark appends to and deletes from a table of the Hadoop catalog', async () => {
  await engines.catalog('files', { spark: { type: 'hadoop', warehouse: join(folder, 'hadoop') } })
  await engines.sql('create table files.ns.t (id int) using iceberg')
  await engines.sql('insert into files.ns.t values (1), (2)')
  await engines.sql('delete from files.ns.t where id = 1')
  const metadata = join(folder, 'hadoop/ns/t/metadata/v3.metadata.json')
  expect((await engines.read('pyiceberg', { metadata })).rows).toEqual([{ id: 2 }])
})

test('a failed request says why, and the next one is answered', async () => {
  await expect(engines.sql('select nonsense')).rejects.toThrow('UNRESOLVED_COLUMN')
  expect(await engines.sql('select 9007199254740993 as n')).toEqual([{ n: '9007199254740993' }])
})
