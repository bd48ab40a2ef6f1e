import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import { HadoopCatalog, JdbcCatalog, type Catalog } from '../../src/index.ts'
import { chainOf, newTable } from '../catalogs/tables.ts'
import { bundle, type Program } from './program.ts'

const processes = 6
const commits = 8
let database: TestDatabase
let program: Program
beforeAll(async () => {
  database = await createTestDatabase()
  program = await bundle(new URL('committer.ts', import.meta.url))
})
afterAll(async () => {
  await database.drop()
  await program.remove()
})

async function expectNoneLost(catalog: Catalog, options: Record<string, string>): Promise<void> {
  const properties = {
    'commit.retry.num-retries': '500',
    'commit.retry.min-wait-ms': '2',
    'commit.retry.max-wait-ms': '60',
  }
  await catalog.createNamespace(['db'])
  const { metadata } = await catalog.createTable({ namespace: ['db'], name: 't' }, { ...newTable, properties })
  const args = [JSON.stringify(options), String(commits)]
  const applied = await Promise.all(Array.from({ length: processes }, () => program.run(args)))
  const chain = chainOf(await catalog.loadTable({ namespace: ['db'], name: 't' })).map(String)
  expect(chain.toSorted()).toEqual(applied.flat().toSorted())
  expect(chain).toHaveLength(processes * commits)
  // Lost tries have left nothing: each file belongs to a snapshot.
  const files = (await readdir(`${metadata.location}/metadata`)).filter((name) => name.startsWith('snap-'))
  expect(files.toSorted()).toEqual(chain.map((id) => `snap-${id}.avro`).toSorted())
}

test('committers in many processes lose nothing on a JDBC catalog', { timeout: 120_000 }, async () => {
  const options = { kind: 'jdbc', name: 'lake', warehouse: `${program.folder}/jdbc`, database: database.url }
  const catalog = await JdbcCatalog.open(options)
  await expectNoneLost(catalog, options)
  await catalog.close()
})

test('committers in many processes lose nothing on a file system catalog', { timeout: 120_000 }, async () => {
  const options = { kind: 'hadoop', name: 'files', warehouse: `${program.folder}/hadoop` }
  await expectNoneLost(new HadoopCatalog(options), options)
})
