import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import { createTable, DuckDb, JdbcCatalog, openTable, planFiles, scanRows } from '../../src/index.ts'
import { field, filesBelow } from './bed.ts'

let folder: string
let database: TestDatabase
let duckDb: DuckDb
let catalog: JdbcCatalog
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-concurrent-'))
  database = await createTestDatabase()
  duckDb = await DuckDb.open({ threads: 1 })
  catalog = await JdbcCatalog.open({ name: 'lake', database: database.url, warehouse: folder })
  await catalog.createNamespace(['ns'])
})
afterAll(async () => {
  await catalog.close()
  await duckDb.close()
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

const schema = { fields: [field(1, 'id', { type: 'int' })] }

test('writers at the same time lose no row and no delete of a table in a JDBC catalog', async () => {
  const identifier = { namespace: ['ns'], name: 't' }
  const properties = {
    'commit.retry.num-retries': '100',
    'commit.retry.min-wait-ms': '1',
    'commit.retry.max-wait-ms': '20',
  }
  const table = await createTable(catalog, identifier, { schema, formatVersion: 3, properties }, { duckDb })
  await table.append(Array.from({ length: 9 }, (_, id) => ({ id })))
  let path = ''
  for await (const [file] of planFiles(table.loaded)) path = file?.file.filePath ?? path
  await Promise.all(
    [0, 1, 2].map(async (writer) => {
      const own = await openTable(catalog, identifier, { duckDb })
      for (let n = 0; n < 3; n += 1) {
        await own.append([{ id: 100 * (writer + 1) + n }])
        // One vector for all of them: who comes second must hold what the first deleted.
        await own.deletePositions(new Map([[path, [writer * 3 + n]]]))
      }
    }),
  )
  await table.refresh()
  const ids: number[] = []
  for await (const rows of scanRows(table.loaded, { duckDb })) ids.push(...rows.map((row) => Number(row['id'])))
  expect(ids.toSorted((a, b) => a - b)).toEqual([100, 101, 102, 200, 201, 202, 300, 301, 302])
  expect(table.metadata.snapshots).toHaveLength(19)
  expect(table.metadata.nextRowId).toBe(18n)
})

test('rows for a table that was dropped do not go into another that has its name', async () => {
  const identifier = { namespace: ['ns'], name: 'again' }
  const dropped = await createTable(catalog, identifier, { schema }, { duckDb })
  await catalog.dropTable(identifier)
  const table = await createTable(catalog, identifier, { schema }, { duckDb })
  const files = await filesBelow(table)
  await expect(dropped.append([{ id: 1 }])).rejects.toMatchObject({ code: 'requirement_failed' })
  await expect(dropped.setProperties({ a: 'b' })).rejects.toMatchObject({ code: 'requirement_failed' })
  await table.refresh()
  expect(table.metadata).toMatchObject({ snapshots: [], properties: {} })
  expect(await filesBelow(table)).toEqual(files)
})
