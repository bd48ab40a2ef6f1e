import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HadoopCatalog, openTable, planRemoveOrphanFiles, type Table } from '@fencepost/iceberg'
import { makeSampleLake } from '../src/sample-lake/index.ts'

// A twentieth of the lake, so that it is there in a second or two.
const scale = 0.05
const now = new Date('2026-11-18T12:00:00Z')
const folders: string[] = []

async function newCatalog(): Promise<{ catalog: HadoopCatalog; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-sample-lake-'))
  folders.push(folder)
  return { catalog: new HadoopCatalog({ name: 'lake', warehouse: folder }), folder }
}

async function rowsOf(catalog: HadoopCatalog, namespace: string, name: string): Promise<string[]> {
  const table = await openTable(catalog, { namespace: [namespace], name })
  try {
    const rows: string[] = []
    for await (const batch of table.scan()) {
      rows.push(
        ...batch.map((row) => JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value))),
      )
    }
    return rows.toSorted()
  } finally {
    await table.close()
  }
}

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
})

describe('a lake that was made', () => {
  let catalog: HadoopCatalog
  let folder = ''
  const progress: number[] = []

  beforeAll(async () => {
    ;({ catalog, folder } = await newCatalog())
    await makeSampleLake(catalog, folder, { scale, now, onProgress: ({ done }) => progress.push(done) })
  }, 120_000)

  const facts = async (namespace: string, name: string, of: (table: Table) => Promise<unknown>) => {
    const table = await openTable(catalog, { namespace: [namespace], name })
    return await of(table)
  }

  test('has the six tables, each in its namespace', async () => {
    const namespaces = await catalog.listNamespaces()
    const tables = (await Promise.all(namespaces.map((each) => catalog.listTables(each)))).flat()
    expect(tables.map(({ namespace, name }) => `${namespace.join('.')}.${name}`).toSorted()).toEqual([
      'analytics.page_views',
      'iot.readings',
      'ops.audit_log',
      'reference.countries',
      'sales.customers',
      'sales.orders',
    ])
  })

  test('page views are many small files and many snapshots', async () => {
    await facts('analytics', 'page_views', async (table) => {
      const { dataFiles, snapshots, partitions } = await table.facts()
      expect(dataFiles.files).toBe(150)
      expect(dataFiles.small).toBe(150)
      expect(snapshots.count).toBe(20)
      expect(partitions.count).toBe(5)
      expect(snapshots.newestMs).toBeLessThanOrEqual(now.getTime())
    })
  })

  test('orders have position deletes, customers equality deletes, readings deletion vectors', async () => {
    await facts('sales', 'orders', async (table) => {
      expect((await table.facts()).deleteFiles.positionFiles).toBe(16)
    })
    await facts('sales', 'customers', async (table) => {
      expect((await table.facts()).deleteFiles.equalityFiles).toBe(8)
    })
    await facts('iot', 'readings', async (table) => {
      expect(table.metadata.formatVersion).toBe(3)
      expect((await table.facts()).deleteFiles.vectors).toBe(5)
    })
  })

  test('the audit log has a manifest for each day and orphans older than 3 days, fewer than would be suspicious', async () => {
    await facts('ops', 'audit_log', async (table) => {
      const { manifests, snapshots } = await table.facts()
      expect(manifests.count).toBe(20)
      expect(snapshots.count).toBeLessThan(10)
      // Files are dated by the storage, so the age is counted from the time of the lake.
      const olderThan = new Date(now.getTime() - 3 * 86_400_000)
      const plan = await planRemoveOrphanFiles(catalog, table.loaded, { olderThan })
      expect(plan.orphans).toHaveLength(4)
      expect(plan.isSuspicious).toBe(false)
    })
  })

  test('a customer whose row was changed has one row', async () => {
    const ids = (await rowsOf(catalog, 'sales', 'customers')).map((row) => JSON.parse(row).customer_id)
    expect(new Set(ids).size).toBe(2000)
    expect(ids).toHaveLength(2000)
  })

  test('progress goes up to 1', () => {
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    expect(progress.at(-1)).toBeCloseTo(1)
  })

  test('is not made a second time', async () => {
    const before = (await catalog.loadTable({ namespace: ['sales'], name: 'orders' })).metadata.tableUuid
    expect(await makeSampleLake(catalog, folder, { scale, now })).toMatchObject({ made: false })
    expect((await catalog.loadTable({ namespace: ['sales'], name: 'orders' })).metadata.tableUuid).toBe(before)
  })

  test('another lake of the same time has the same rows', async () => {
    const other = await newCatalog()
    await makeSampleLake(other.catalog, other.folder, { scale, now })
    for (const [namespace, name] of [
      ['analytics', 'page_views'],
      ['iot', 'readings'],
      ['sales', 'customers'],
      ['sales', 'orders'],
    ] as const) {
      expect(await rowsOf(other.catalog, namespace, name)).toEqual(await rowsOf(catalog, namespace, name))
    }
  }, 120_000)
})

test('a lake whose making was interrupted is made anew', async () => {
  const { catalog, folder } = await newCatalog()
  const stopped = new AbortController()
  const onProgress = ({ table }: { table: string }): void => {
    if (table === 'sales.customers') stopped.abort(new Error('stop'))
  }
  await expect(makeSampleLake(catalog, folder, { scale, now, signal: stopped.signal, onProgress })).rejects.toThrow(
    'stop',
  )
  await expect(catalog.loadTable({ namespace: ['reference'], name: 'countries' })).rejects.toThrow()

  expect(await makeSampleLake(catalog, folder, { scale, now })).toMatchObject({ made: true })
  const table = await openTable(catalog, { namespace: ['sales'], name: 'customers' })
  expect((await table.facts()).deleteFiles.equalityFiles).toBe(8)
}, 120_000)

test('a table of the same name that is somebody else’s is left alone', async () => {
  const { catalog, folder } = await newCatalog()
  await catalog.createNamespace(['sales'])
  const schema = { fields: [{ id: 1, name: 'mine', required: false, type: { type: 'string' } }] } as const
  const mine = await catalog.createTable({ namespace: ['sales'], name: 'orders' }, { schema })
  await expect(makeSampleLake(catalog, folder, { scale, now })).rejects.toMatchObject({ code: 'table_exists' })
  expect((await catalog.loadTable(mine.identifier)).metadata.tableUuid).toBe(mine.metadata.tableUuid)
})
