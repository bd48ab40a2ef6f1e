import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { createTable, DuckDb, JdbcCatalog, openTable, planFiles, scanRows } from '../../src/index.ts'
import { field } from './bed.ts'

test('writers at the same time lose no row and no delete of a table in a JDBC catalog', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-concurrent-'))
  const { adminUrl, run } = inject('testServer')
  const admin = new pg.Client({ connectionString: adminUrl })
  await admin.connect()
  await admin.query(`create database ${run}_writers`)
  await admin.end()
  const url = new URL(adminUrl)
  url.pathname = `/${run}_writers`
  const pool = new pg.Pool({ connectionString: url.href })
  const duckDb = await DuckDb.open({ threads: 1 })
  try {
    const catalog = await JdbcCatalog.open({ name: 'lake', database: pool, warehouse: folder })
    await catalog.createNamespace(['ns'])
    const identifier = { namespace: ['ns'], name: 't' }
    const properties = {
      'commit.retry.num-retries': '100',
      'commit.retry.min-wait-ms': '1',
      'commit.retry.max-wait-ms': '20',
    }
    const schema = { fields: [field(1, 'id', { type: 'int' })] }
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
  } finally {
    await duckDb.close()
    await pool.end()
    await rm(folder, { recursive: true, force: true })
  }
})
