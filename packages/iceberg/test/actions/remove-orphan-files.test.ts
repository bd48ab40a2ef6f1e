import { mkdtemp, rm, symlink, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createTable,
  executeRemoveOrphanFiles,
  HadoopCatalog,
  IcebergError,
  listQuarantines,
  LocalStorage,
  openTable,
  planRemoveOrphanFiles,
  purgeQuarantine,
  removeOrphanFiles,
  restoreQuarantine,
  serializeTableMetadata,
  type FolderStorage,
  type RemoveOrphanFilesOptions,
  type RemoveOrphanFilesRun,
} from '../../src/index.ts'
import { Fault, withMember, type FaultMode } from '../commit/faults.ts'
import {
  agedBucket,
  append,
  catalogOn,
  contentFile,
  copyOf,
  dataPath,
  dayMs,
  faultyCatalog,
  lake,
  reachableOf,
  sorted,
  type Lake,
} from './lake.ts'

type AgedLake = Omit<Lake, 'storage'> & { readonly storage: ReturnType<typeof agedBucket> }

/** A table of three snapshots and large files, and two orphans. */
async function usual(properties: Record<string, string> = {}): Promise<AgedLake & { orphans: string[] }> {
  const storage = agedBucket()
  const made = await lake({ properties }, storage)
  for (const name of ['a', 'b']) await append(made, name)
  await made.table.deleteFiles([dataPath(made.table, 'a')])
  await storage.write(dataPath(made.table, 'b'), Buffer.alloc(100_000))
  const orphans = [dataPath(made.table, 'orphan'), `${made.table.metadata.location}/metadata/orphan-m0.avro`]
  for (const path of orphans) await storage.write(path, Buffer.from('file'))
  await made.other.refresh()
  return { ...made, storage, orphans }
}

async function removal(
  { table, catalog }: Pick<Lake, 'table' | 'catalog'>,
  options: RemoveOrphanFilesOptions = {},
  run: Partial<RemoveOrphanFilesRun> = {},
) {
  await table.refresh()
  return await removeOrphanFiles(table.loaded, options, { catalog, ...run })
}

async function orphansOf({ table, catalog }: Pick<Lake, 'table' | 'catalog'>, options: RemoveOrphanFilesOptions = {}) {
  await table.refresh()
  return sorted((await planRemoveOrphanFiles(catalog, table.loaded, options)).orphans.map(({ path }) => path))
}

async function reasonOf(work: Promise<unknown>): Promise<unknown> {
  const error = await work.then(
    () => undefined,
    (refusal: IcebergError) => refusal,
  )
  expect(error).toMatchObject({ code: 'action_refused' })
  return error?.details['reason']
}

async function expectReadable({ table, storage }: Pick<Lake, 'table' | 'storage'>): Promise<void> {
  await table.refresh()
  for (const path of await reachableOf(table.loaded)) expect(storage.files.has(path), path).toBe(true)
}

describe('removing orphans', () => {
  test('removes files that nothing refers to, and then finds none', async () => {
    const made = await usual()
    const before = new Set(made.storage.files.keys())
    const plan = await planRemoveOrphanFiles(made.catalog, made.table.loaded)
    expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
    expect(sorted(plan.orphans.map(({ path }) => path))).toEqual(sorted(made.orphans))
    const dry = await removeOrphanFiles(made.table.loaded, { dryRun: true }, { catalog: made.catalog })
    expect(sorted(dry.orphanFileLocations)).toEqual(sorted(made.orphans))
    expect([...made.storage.files.keys()]).toEqual([...before])
    const result = await executeRemoveOrphanFiles(made.table.loaded, plan, { catalog: made.catalog })
    expect(result).toMatchObject({ removedFiles: 2, removedBytes: 8, failedDeletes: [], missingFiles: 0, keptFiles: 0 })
    expect(sorted(made.storage.files.keys())).toEqual(sorted([...before].filter((p) => !made.orphans.includes(p))))
    expect(await orphansOf(made)).toEqual([])
    await expectReadable(made)
  })

  test('leaves files that are not old enough, hidden ones, statistics, and the hint', async () => {
    const made = await usual({ 'write.metadata.previous-versions-max': '1' })
    const { table, storage, catalog, orphans } = made
    const { location } = table.metadata
    storage.ages.set(orphans[0] ?? '', 2 * dayMs)
    for (const name of ['data/_temporary/x', 'data/.hidden', '_x/y', 'metadata/_fencepost/deletions/z']) {
      await storage.write(`${location}/${name}`, Buffer.from('file'))
    }
    await storage.write(`${location}/metadata/stats.puffin`, Buffer.from('file'))
    const statistics = { snapshotId: table.metadata.currentSnapshotId ?? 0n, fileSizeInBytes: 4n } as const
    await catalog.commit(table.loaded, {
      requirements: [],
      updates: [
        {
          action: 'set-statistics',
          statistics: {
            ...statistics,
            statisticsPath: `${location}/metadata/stats.puffin`,
            fileFooterSizeInBytes: 1n,
            blobMetadata: [],
          },
        },
      ],
    })
    // The log has one entry: the metadata files before it are orphans, as in Spark.
    const found = await orphansOf(made)
    expect(found).toContain(orphans[1])
    expect(found.filter((path) => !path.endsWith('.metadata.json'))).toEqual([orphans[1]])
    expect(found).toContain(`${location}/metadata/v1.metadata.json`)
    expect(found).not.toContain(table.loaded.metadataLocation)
    expect(await orphansOf(made, { olderThan: new Date(Date.now() - 1.5 * dayMs) })).toContain(orphans[0])
  })

  test('looks into folders of partitions whose field begins with a line', async () => {
    const storage = agedBucket()
    const made = await lake(
      { partitionSpec: { fields: [{ fieldId: 1000, sourceId: 1, name: '_id', transform: { name: 'identity' } }] } },
      storage,
    )
    const { location } = made.table.metadata
    for (const name of ['data/_id=1/x.parquet', 'data/_other=1/x.parquet']) {
      await storage.write(`${location}/${name}`, Buffer.from('x'))
    }
    expect(await orphansOf({ ...made })).toEqual([`${location}/data/_id=1/x.parquet`])
  })

  test('leaves metadata that is newer than the table as it was loaded', async () => {
    const made = await usual()
    const { storage, table } = made
    const newer = `${table.metadata.location}/metadata/v99.metadata.json`
    const older = `${table.metadata.location}/metadata/00001-x.metadata.json`
    for (const path of [newer, older]) await storage.write(path, serializeTableMetadata(table.metadata, path))
    // A catalog that still gives the version from before.
    const stale = withMember(made.catalog, 'loadTable', async () => table.loaded)
    const { orphans } = await planRemoveOrphanFiles(stale, table.loaded)
    expect(orphans.map(({ path }) => path)).toContain(older)
    expect(orphans.map(({ path }) => path)).not.toContain(newer)
    const unknowing = withMember(made.catalog, 'loadTable', async () => ({
      ...table.loaded,
      metadataLocation: undefined,
    }))
    const unknown = await planRemoveOrphanFiles(unknowing, table.loaded)
    expect(unknown.orphans.filter(({ path }) => path.endsWith('.metadata.json'))).toEqual([])
  })

  test('a plan that is cut removes what it holds, and the next one the rest', async () => {
    const made = await usual()
    expect(await removal(made, { maxFiles: 1 })).toMatchObject({ removedFiles: 1, plan: { isTruncated: true } })
    expect(await removal(made, { maxFiles: 1 })).toMatchObject({ removedFiles: 1, plan: { isTruncated: false } })
    expect(await orphansOf(made)).toEqual([])
  })
})

describe('what a writer commits meanwhile stays, however old its file is', () => {
  test('between the listing and the load', async () => {
    const made = await usual()
    const slow = made.orphans[0] ?? ''
    const storage: FolderStorage = {
      ...made.storage,
      async *list(folder) {
        yield* made.storage.list(folder)
        if (!folder.endsWith('/t')) return
        await made.other.refresh()
        await made.other.appendFiles([contentFile(slow)])
      },
    }
    const catalog = catalogOn(storage)
    const table = await openTable(catalog, made.table.loaded.identifier)
    expect(await orphansOf({ catalog, table })).toEqual([made.orphans[1]])
  })

  test('between plan and execution', async () => {
    const made = await usual()
    const slow = made.orphans[0] ?? ''
    const plan = await planRemoveOrphanFiles(made.catalog, made.table.loaded)
    await made.other.appendFiles([contentFile(slow)])
    const result = await executeRemoveOrphanFiles(made.table.loaded, plan, { catalog: made.catalog })
    expect(result).toMatchObject({ orphanFileLocations: [made.orphans[1]], keptFiles: 1 })
    await expectReadable(made)
  })

  test('between two batches', async () => {
    const made = await usual()
    let batches = 0
    let kept: string | undefined
    const storage: FolderStorage = {
      ...made.storage,
      delete: async (paths) => {
        if ((batches += 1) === 1) {
          kept = made.orphans.find((path) => !paths.includes(path) && path.endsWith('.parquet')) ?? made.orphans[1]
          await made.other.refresh()
          await made.other.appendFiles([contentFile(kept ?? '')])
        }
        return await made.storage.delete(paths)
      },
    }
    const catalog = catalogOn(storage)
    const table = await openTable(catalog, made.table.loaded.identifier)
    await removal({ catalog, table }, {}, { deleteBatchFiles: 1, maxConcurrentDeletes: 1 })
    expect(batches).toBe(1)
    expect(made.storage.files.has(kept ?? '')).toBe(true)
    await expectReadable(made)
  })

  test('after the plan, as seen through a rollback to a snapshot', async () => {
    const made = await usual()
    const first = made.table.metadata.snapshots[0]?.snapshotId ?? 0n
    const plan = await planRemoveOrphanFiles(made.catalog, made.table.loaded)
    await made.other.rollbackTo(first)
    await executeRemoveOrphanFiles(made.table.loaded, plan, { catalog: made.catalog })
    await expectReadable(made)
  })
})

describe('removing orphans refuses', () => {
  const plan = ({ table, catalog }: Pick<Lake, 'table' | 'catalog'>, options: RemoveOrphanFilesOptions = {}) =>
    planRemoveOrphanFiles(catalog, table.loaded, options)

  test('a table whose gc.enabled is false', async () => {
    const made = await usual({ 'gc.enabled': 'false' })
    expect(await reasonOf(plan(made))).toBe('gc_disabled')
  })

  test('files younger than 24 hours, by the clock of the storage', async () => {
    const made = await usual()
    const ago = (ms: number) => ({ olderThan: new Date(Date.now() - ms) })
    expect(await reasonOf(plan(made, ago(23 * 60 * 60 * 1000)))).toBe('older_than_too_recent')
    expect(await reasonOf(plan(made, { olderThan: new Date(Number.NaN) }))).toBe('older_than_too_recent')
    const slow: FolderStorage = { ...made.storage, now: async () => new Date(Date.now() - 3 * dayMs) }
    const catalog = catalogOn(slow)
    const table = await openTable(catalog, made.table.loaded.identifier)
    expect(await reasonOf(plan({ catalog, table }, ago(3 * dayMs)))).toBe('older_than_too_recent')
  })

  test('roots, and folders that are not those of the table', async () => {
    const made = await usual()
    expect(await reasonOf(plan(made, { location: 's3://bucket/' }))).toBe('location_root')
    expect(await reasonOf(plan(made, { location: 's3://bucket/w/db' }))).toBe('location_outside')
    expect(await reasonOf(plan(made, { location: 's3://bucket/w/db/t2' }))).toBe('location_outside')
    expect(await orphansOf(made, { location: `${made.table.metadata.location}/data/` })).toEqual([made.orphans[0]])
  })

  test('a folder that another table of the catalog is in, or that is in one', async () => {
    const made = await usual()
    const { location } = made.table.metadata
    expect(await reasonOf(plan(made, { otherLocations: [`${location}/inner`] }))).toBe('location_shared')
    expect(await reasonOf(plan(made, { otherLocations: ['s3a://bucket/w/db'] }))).toBe('location_shared')
    const apart = await plan(made, { otherLocations: [`${location}2`, 'hdfs://x/y'] })
    expect(apart.tablesChecked).toEqual({ tables: 0, isComplete: true })
    const other = await made.catalog.createTable({ namespace: ['db'], name: 'u' }, { schema: { fields: [] } })
    expect((await plan(made)).tablesChecked).toEqual({ tables: 1, isComplete: true })
    expect((await plan(made, { maxTablesChecked: 0 })).tablesChecked).toEqual({ tables: 0, isComplete: false })
    const shared = withMember(made.catalog, 'loadTable', async (identifier, options) => {
      if (identifier.name === 't') return await made.catalog.loadTable(identifier, options)
      return { ...other, metadata: { ...other.metadata, location } }
    })
    expect(await reasonOf(plan({ ...made, catalog: shared }))).toBe('location_shared')
  })

  test('a folder with the metadata of another table, unless it is said to be gone', async () => {
    const made = await usual()
    const { storage, table } = made
    const stranger = { ...table.metadata, tableUuid: '00000000-0000-4000-8000-000000000000' }
    for (const name of ['metadata/00000-other.metadata.json', 'nested/metadata/v1.metadata.json']) {
      const path = `${table.metadata.location}/${name}`
      await storage.write(path, serializeTableMetadata(stranger, path))
      // Whatever its age: the other table may be in use.
      storage.ages.set(path, 0)
      expect(await reasonOf(plan(made))).toBe('location_shared')
      expect(await orphansOf(made, { allowOtherTables: true })).toEqual(sorted(made.orphans))
      await storage.delete([path])
    }
  })

  test('paths that the table knows under another scheme or authority, unless they are said to be equal', async () => {
    const made = await usual()
    const alias = dataPath(made.table, 'alias').replace('s3://bucket/', 's3a://alias/')
    await made.storage.write(dataPath(made.table, 'alias'), Buffer.from('file'))
    await made.table.appendFiles([contentFile(alias)])
    expect(await reasonOf(plan(made))).toBe('prefix_mismatch')
    expect(await orphansOf(made, { equalAuthorities: { 'alias,older': 'bucket' } })).toEqual(sorted(made.orphans))
    const ignored = await plan(made, { prefixMismatchMode: 'ignore' })
    expect(ignored).toMatchObject({ mismatched: 1, orphans: { length: 2 } })
    expect(await plan(made, { prefixMismatchMode: 'delete' })).toMatchObject({ mismatched: 0, orphans: { length: 3 } })
  })

  test('more orphans than a share of all bytes, unless it is confirmed', async () => {
    const made = await usual()
    await made.storage.write(made.orphans[0] ?? '', Buffer.alloc(200_000))
    expect(await reasonOf(removal(made))).toBe('too_many_orphans')
    expect(made.storage.files.has(made.orphans[0] ?? '')).toBe(true)
    expect(await reasonOf(removal(made, { maxOrphanShare: 2 }))).toBe('options_invalid')
    expect(await removal(made, {}, { confirmShare: true })).toMatchObject({ removedFiles: 2 })
  })

  test('a plan that is older than a day, and one of another table', async () => {
    const made = await usual()
    const made1 = await plan(made)
    const old = { ...made1, settings: { ...made1.settings, listedAtMs: Date.now() - 1.1 * dayMs } }
    const run = { catalog: made.catalog }
    expect(await reasonOf(executeRemoveOrphanFiles(made.table.loaded, old, run))).toBe('plan_too_old')
    const other = { ...made1, table: { ...made1.table, uuid: 'another' } }
    expect(await reasonOf(executeRemoveOrphanFiles(made.table.loaded, other, run))).toBe('other_table')
  })
})

describe('quarantine', () => {
  test('orphans are moved beside the metadata, and restored or purged later', async () => {
    const made = await usual()
    const { table, storage, orphans } = made
    const before = new Map(storage.files)
    const moved = await removal(made, {}, { quarantine: true, deleteBatchFiles: 1 })
    expect(moved).toMatchObject({ removedFiles: 2, quarantineId: expect.any(String) })
    for (const path of orphans) expect(storage.files.has(path)).toBe(false)
    expect(await orphansOf(made)).toEqual([])
    const [quarantine] = await listQuarantines(table.loaded)
    expect(quarantine).toMatchObject({ id: moved.quarantineId, files: 2, bytes: 8 })
    expect(await restoreQuarantine(table.loaded, moved.quarantineId ?? '')).toEqual({ restored: 2, taken: [] })
    expect(sorted(storage.files.keys())).toEqual(sorted(before.keys()))
    expect(await restoreQuarantine(table.loaded, moved.quarantineId ?? '')).toEqual({ restored: 0, taken: [] })
    const again = await removal(made, {}, { quarantine: true })
    expect(await purgeQuarantine(table.loaded, again.quarantineId ?? '')).toEqual({ purged: 2 })
    expect(await listQuarantines(table.loaded)).toEqual([])
    expect(sorted(storage.files.keys())).toEqual(sorted([...before.keys()].filter((path) => !orphans.includes(path))))
  })

  test('does not overwrite what is there again', async () => {
    const made = await usual()
    const moved = await removal(made, {}, { quarantine: true })
    await made.storage.write(made.orphans[0] ?? '', Buffer.from('new'))
    const result = await restoreQuarantine(made.table.loaded, moved.quarantineId ?? '')
    expect(result).toEqual({ restored: 1, taken: [made.orphans[0]] })
    expect(await listQuarantines(made.table.loaded)).toHaveLength(1)
    expect(Buffer.from(made.storage.files.get(made.orphans[0] ?? '') ?? []).toString()).toBe('new')
  })
})

test('files that could not be deleted are reported, and those that are gone already', async () => {
  const made = await usual()
  const [stuck = '', gone = ''] = made.orphans
  const storage: FolderStorage = {
    ...made.storage,
    delete: async (paths) => ({
      failed: paths.includes(stuck) ? [{ location: stuck, error: new Error('it is stuck') }] : [],
      missing: (await made.storage.delete(paths.filter((path) => path !== stuck))).missing,
    }),
  }
  const catalog = catalogOn(storage)
  const table = await openTable(catalog, made.table.loaded.identifier)
  const plan = await planRemoveOrphanFiles(catalog, table.loaded)
  await made.storage.delete([gone])
  const result = await executeRemoveOrphanFiles(table.loaded, plan, { catalog })
  expect(result).toMatchObject({
    orphanFileLocations: [],
    removedFiles: 0,
    missingFiles: 1,
    failedDeletes: [{ path: stuck, error: 'it is stuck' }],
  })
})

describe('a removal that is interrupted leaves a readable table, and the next ends as if nothing had happened', () => {
  const cases = (['before', 'after', 'down'] as FaultMode[]).flatMap((mode) =>
    [false, true].map((quarantine) => [mode, quarantine] as const),
  )
  test.each(cases)('at any call, failing %s it, quarantine %s', { timeout: 60_000 }, async (mode, quarantine) => {
    const { orphans, ...origin } = await usual()
    for (let at = 1; ; at += 1) {
      const made = await copyOf(origin, agedBucket())
      const before = sorted(made.storage.files.keys())
      const fault = new Fault(at, mode)
      const catalog = faultyCatalog(made.storage, fault)
      await openTable(catalog, made.table.loaded.identifier)
        .then((table) => removal({ catalog, table }, {}, { quarantine, deleteBatchFiles: 1 }))
        .catch(() => {})
      await expectReadable(made)
      if (quarantine) {
        // Every file is where it was, or can be brought back there.
        for (const { id } of await listQuarantines(made.table.loaded)) await restoreQuarantine(made.table.loaded, id)
        expect(sorted(made.storage.files.keys())).toEqual(before)
      }
      await removal(made)
      expect(sorted(made.storage.files.keys())).toEqual(before.filter((path) => !orphans.includes(path)))
      if (!fault.reached) return
    }
  })
})

describe('on a local disk', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fencepost-orphans-test-'))
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  test('files are found by any spelling of their path, and through a link to the folder', async () => {
    const catalog = new HadoopCatalog({ name: 'files', warehouse: `file://${folder}/w` })
    await catalog.createNamespace(['db'])
    const table = await createTable(catalog, { namespace: ['db'], name: 't' }, { schema: { fields: [] } })
    const storage = new LocalStorage()
    const data = join(folder, 'w/db/t/data')
    for (const name of ['a', 'b', 'orphan']) {
      await storage.write(`${data}/${name}.parquet`, Buffer.alloc(10))
      await utimes(`${data}/${name}.parquet`, 1, 1)
    }
    await table.appendFiles([
      contentFile(`file:${data}//a.parquet`),
      contentFile(`${join(folder, 'w')}/./db/t/data/b.parquet`),
    ])
    expect(await orphansOf({ catalog, table })).toEqual([`file://${data}/orphan.parquet`])
    const result = await removal({ catalog, table }, { maxOrphanShare: 1 })
    expect(result).toMatchObject({ removedFiles: 1, failedDeletes: [] })
    await symlink(join(folder, 'w'), join(folder, 'link'))
    const linked = new HadoopCatalog({ name: 'files', warehouse: join(folder, 'link') })
    const through = await linked.loadTable(table.loaded.identifier)
    const moved = { ...through, metadata: { ...through.metadata, location: join(folder, 'link/db/t') } }
    const asMoved = withMember(linked, 'loadTable', async () => moved)
    await storage.write(`${data}/other.parquet`, Buffer.alloc(10))
    await utimes(`${data}/other.parquet`, 1, 1)
    const plan = await planRemoveOrphanFiles(asMoved, moved, { allowOtherTables: true })
    expect(plan.orphans.map(({ path }) => path)).toEqual([join(folder, 'link/db/t/data/other.parquet')])
  })
})
