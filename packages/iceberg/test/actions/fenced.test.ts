import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import {
  createTable,
  DuckDb,
  executeRewriteDataFiles,
  executeRewriteManifests,
  executeRewritePositionDeletes,
  expireSnapshots,
  JdbcCatalog,
  planRewriteDataFiles,
  planRewriteManifests,
  planRewritePositionDeletes,
  removeOrphanFiles,
  type ActionRun,
  type InTransaction,
  type Table,
} from '../../src/index.ts'
import { memoryBucket } from '../commit/faults.ts'
import { field, filesBelow } from '../write/bed.ts'
import { agedBucket, append, dataPath, lake } from './lake.ts'

// Whoever runs an action may lose its fence at any time. Then no commit is made and no batch of files is deleted.

let root: string
let database: TestDatabase
let pool: pg.Pool
let duckDb: DuckDb
let catalog: JdbcCatalog
let tables = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-fenced-'))
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  pool.on('error', () => {})
  await pool.query('create table ledger (what text)')
  duckDb = await DuckDb.open({ threads: 1 })
  catalog = await JdbcCatalog.open({ name: 'lake', database: pool, warehouse: `file://${root}` })
  await catalog.createNamespace(['db'])
})
afterAll(async () => {
  await duckDb.close()
  await pool.end()
  await database.drop()
  await rm(root, { recursive: true, force: true })
})

/** Three files, each with two files of deleted positions, in six manifests and nine snapshots. */
async function worn(): Promise<Table> {
  const properties = {
    'commit.manifest-merge.enabled': 'false',
    'write.delete.granularity': 'file',
    'history.expire.max-snapshot-age-ms': '1',
  }
  const schema = { fields: [field(1, 'id', { type: 'long' })] }
  const options = { schema, properties, formatVersion: 2 as const }
  const identifier = { namespace: ['db'], name: `t${(tables += 1)}` }
  const table = await createTable(catalog, identifier, options, { duckDb })
  for (const n of [0n, 10n, 20n]) {
    await table.append([n, n + 1n, n + 2n, n + 3n].map((id) => ({ id })))
    const { metadata, storage } = table.loaded
    const files: string[] = []
    for await (const { location } of storage.list(`${metadata.location}/data`)) files.push(location)
    for (const position of [0, 1]) {
      const file =
        files
          .filter((path) => !path.includes('deletes'))
          .toSorted()
          .at(-1) ?? ''
      await table.deletePositions(new Map([[file, [position]]]))
    }
  }
  return table
}

/** A transaction as that of an attempt: with a row of its own, and a fence that can be lost. */
function fencedBy(what: string, isHeld: () => boolean): InTransaction {
  return async (work) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await client.query('insert into ledger values ($1)', [what])
      if (!isHeld()) throw new Error('the fence is lost')
      const result = await work(client)
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    } finally {
      client.release()
    }
  }
}

async function ledger(what: string): Promise<number> {
  const { rows } = await pool.query<{ n: number }>('select count(*)::int as n from ledger where what = $1', [what])
  return rows[0]?.n ?? -1
}

/** The number in the name of a metadata file, which every commit counts up. */
function versionOf(metadataLocation: string | undefined): number {
  return Number(/\/(\d+)-[^/]*$/.exec(metadataLocation ?? '')?.[1])
}

const committing = {
  rewrite_data_files: async ({ loaded }: Table, run: ActionRun) => {
    const options = { 'rewrite-all': 'true', 'remove-dangling-deletes': 'true' }
    return await executeRewriteDataFiles(loaded, await planRewriteDataFiles(loaded, { options }), run)
  },
  rewrite_position_delete_files: async ({ loaded }: Table, run: ActionRun) => {
    const plan = await planRewritePositionDeletes(loaded, { options: { 'rewrite-all': 'true' } })
    return await executeRewritePositionDeletes(loaded, plan, run)
  },
  rewrite_manifests: async ({ loaded }: Table, run: ActionRun) =>
    await executeRewriteManifests(loaded, await planRewriteManifests(loaded), run),
  expire_snapshots: async (table: Table, run: ActionRun) =>
    await expireSnapshots(table.loaded, { olderThan: new Date(Date.now() + 60_000), retainLast: 1 }, run),
}

describe.each(Object.entries(committing))('%s', (name, act) => {
  test('commits only in the transaction that it is given', async () => {
    const table = await worn()
    const before = table.loaded.metadataLocation
    await act(table, { catalog, inTransaction: fencedBy(name, () => true) })
    await table.refresh()
    expect(table.loaded.metadataLocation).not.toBe(before)
    expect(await ledger(name)).toBe(versionOf(table.loaded.metadataLocation) - versionOf(before))
  })

  test('changes nothing when the fence is lost, and leaves no file', async () => {
    const table = await worn()
    const before = { at: table.loaded.metadataLocation, files: await filesBelow(table) }
    const lost = act(table, { catalog, inTransaction: fencedBy(`${name} lost`, () => false) })
    await expect(lost).rejects.toMatchObject({ code: 'commit_refused' })
    await table.refresh()
    expect(table.loaded.metadataLocation).toBe(before.at)
    expect(await filesBelow(table)).toEqual(before.files)
    expect(await ledger(`${name} lost`)).toBe(0)
  })
})

/** Lets so many batches go. */
function lostAfter(batches: number): () => Promise<void> {
  let left = batches
  return async () => {
    left -= 1
    if (left < 0) throw new Error('the fence is lost')
  }
}

test('an expiry deletes no further batch once the fence is lost, and the next run finishes it', async () => {
  const made = await lake()
  for (const name of ['a', 'b', 'c', 'd']) await append(made, name)
  const { table, storage } = made
  await table.deleteFiles([dataPath(table, 'a'), dataPath(table, 'b'), dataPath(table, 'c')])
  const options = { olderThan: new Date(Date.now() + 60_000), retainLast: 1 }
  const size = storage.files.size
  const run = { catalog: made.catalog, deleteBatchFiles: 2, maxConcurrentDeletes: 1 }
  const lost = expireSnapshots(table.loaded, options, { ...run, beforeDelete: lostAfter(1) })
  await expect(lost).rejects.toThrow('the fence is lost')
  await table.refresh()
  expect(table.metadata.snapshots).toHaveLength(1)
  // A metadata file and a list of deletions came; two files went.
  expect(storage.files.size).toBe(size + 2 - 2)
  const next = await expireSnapshots(table.loaded, options, run)
  expect(next.finishedLists).toBe(1)
  expect(storage.files.has(dataPath(table, 'a'))).toBe(false)
  expect(storage.files.has(dataPath(table, 'd'))).toBe(true)
})

test('an expiry leaves the list of deletions of another that has not committed yet', async () => {
  const bucket = memoryBucket()
  const made = await lake(
    {},
    {
      ...bucket,
      async *list(folder) {
        for await (const file of bucket.list(folder)) yield { ...file, modifiedAt: new Date() }
      },
    },
  )
  for (const name of ['a', 'b']) await append(made, name)
  const { table, other, catalog: lakeCatalog } = made
  await table.deleteFiles([dataPath(table, 'a')])
  const options = { olderThan: new Date(Date.now() + 60_000), retainLast: 1 }
  const beside = async (): Promise<void> => {
    await other.refresh()
    const nothing = await expireSnapshots(other.loaded, { olderThan: new Date(0) }, { catalog: lakeCatalog })
    expect(nothing.finishedLists).toBe(0)
  }
  const lost = { catalog: lakeCatalog, guard: beside, beforeDelete: lostAfter(0) }
  await expect(expireSnapshots(table.loaded, options, lost)).rejects.toThrow('the fence is lost')
  await table.refresh()
  const next = await expireSnapshots(table.loaded, options, { catalog: lakeCatalog })
  expect(next.finishedLists).toBe(1)
  expect(made.storage.files.has(dataPath(table, 'a'))).toBe(false)
})

test.each(['deleted', 'moved'])('no further batch of orphans is %s once the fence is lost', async (how) => {
  const storage = agedBucket()
  const made = await lake({}, storage)
  await append(made, 'a')
  const orphans = ['w', 'x', 'y', 'z'].map((name) => dataPath(made.table, name))
  for (const path of orphans) await storage.write(path, Buffer.from('file'))
  const lost = removeOrphanFiles(
    made.table.loaded,
    {},
    {
      catalog: made.catalog,
      confirmShare: true,
      quarantine: how === 'moved',
      deleteBatchFiles: 1,
      maxConcurrentDeletes: 1,
      beforeDelete: lostAfter(2),
    },
  )
  await expect(lost).rejects.toThrow('the fence is lost')
  expect(orphans.filter((path) => storage.files.has(path))).toHaveLength(2)
})
