import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  buildSnapshot,
  commitTable,
  createTable,
  DuckDb,
  HadoopCatalog,
  manifestsOf,
  openTable,
  readManifest,
  scanRows,
  SnapshotWork,
  type FolderStorage,
  type ManifestEntry,
  type NewTable,
  type SnapshotChange,
  type Table,
} from '../../src/index.ts'
import { memoryBucket } from '../commit/faults.ts'
import { entriesOf, field, filesBelow } from './bed.ts'

let duckDb: DuckDb
beforeAll(async () => {
  duckDb = await DuckDb.open({ threads: 1 })
})
afterAll(() => duckDb.close())

const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'long' }), field(2, 'p', { type: 'string' })],
}
const byP: NewTable['partitionSpec'] = {
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
}
const unmerged = { 'commit.manifest-merge.enabled': 'false', 'commit.retry.min-wait-ms': '1' }

/** Which locations are read and written. */
function recorded(inner: FolderStorage) {
  const reads: string[] = []
  const writes: string[] = []
  const storage: FolderStorage = {
    ...inner,
    read: (location, range) => {
      reads.push(location)
      return inner.read(location, range)
    },
    write: (location, content, options) => {
      writes.push(location)
      return inner.write(location, content, options)
    },
  }
  const manifests = (locations: readonly string[]) => locations.filter((location) => /-m\d+\.avro$/.test(location))
  return {
    storage,
    clear: () => {
      reads.length = 0
      writes.length = 0
    },
    manifestsRead: () => manifests(reads),
    manifestsWritten: () => manifests(writes),
  }
}

async function newBed(table: Omit<NewTable, 'schema'>) {
  const record = recorded(memoryBucket())
  const catalog = new HadoopCatalog({
    name: 'files',
    warehouse: 's3://bucket/w',
    storage: record.storage,
    writeToObjectStore: true,
  })
  await catalog.createNamespace(['db'])
  const identifier = { namespace: ['db'], name: 't' }
  const made = await createTable(catalog, identifier, { schema, ...table }, { duckDb })
  return { table: made, catalog, record }
}

type Bed = Awaited<ReturnType<typeof newBed>>

async function commit({ catalog, table }: Bed, change: SnapshotChange, conflict?: () => Promise<void>) {
  const work = new SnapshotWork()
  let met = false
  const outcome = await commitTable(
    catalog,
    table.loaded.identifier,
    (loaded, attempt) => buildSnapshot(loaded, 'main', change, attempt, { work }),
    {
      pause: async () => {},
      guard: async () => {
        if (met || conflict === undefined) return
        met = true
        await conflict()
      },
    },
  )
  await table.refresh()
  return outcome
}

const one = (id: number, p: string | null = 'a') => [{ id: BigInt(id), p }]

async function ids(table: Table): Promise<number[]> {
  const found: number[] = []
  for await (const rows of scanRows(table.loaded, { duckDb })) found.push(...rows.map((row) => Number(row['id'])))
  return found.toSorted((a, b) => a - b)
}

/** The live files of the head with their manifests. */
async function liveFiles({ loaded }: Table): Promise<(ManifestEntry & { manifestPath: string })[]> {
  const head = loaded.metadata.snapshots.at(-1) ?? expect.fail()
  const files: (ManifestEntry & { manifestPath: string })[] = []
  for (const manifest of await manifestsOf(loaded, head)) {
    const { manifestPath } = manifest
    const entries = readManifest(await loaded.storage.read(manifestPath), manifest)
    files.push(...entries.map((entry) => ({ ...entry, manifestPath })))
  }
  return files.toSorted((a, b) => Number(a.sequenceNumber - b.sequenceNumber))
}

test.each([1, 2, 3] as const)('in v%i a file that is to be removed must be found', async (formatVersion) => {
  const bed = await newBed({ formatVersion, partitionSpec: byP, properties: unmerged })
  for (const id of [0, 1]) await bed.table.append(one(id, `p${id}`))
  const live = await liveFiles(bed.table)
  const [gone = expect.fail(), second] = ['p0', 'p1'].map((p) => live.find(({ file }) => file.partition[0] === p))
  await bed.table.deleteFiles([gone.file.filePath])
  const before = await filesBelow(bed.table)
  const change: SnapshotChange = { added: [], removed: [gone, second ?? expect.fail()], operation: 'replace' }
  await expect(commit(bed, change)).rejects.toMatchObject({
    code: 'file_not_live',
    details: { files: [gone.file.filePath] },
  })
  expect(await filesBelow(bed.table)).toEqual(before)
  expect(await ids(bed.table)).toEqual([1])
})

test('a file that another commit removes between two tries is missed in the second', async () => {
  const bed = await newBed({ partitionSpec: byP, properties: unmerged })
  for (const id of [0, 1]) await bed.table.append(one(id))
  const live = await liveFiles(bed.table)
  const other = await openTable(bed.catalog, bed.table.loaded.identifier, { duckDb })
  const path = live[0]?.file.filePath ?? ''
  const committing = commit(bed, { added: [], removed: live }, async () => void (await other.deleteFiles([path])))
  await expect(committing).rejects.toMatchObject({ code: 'file_not_live', details: { files: [path] } })
  await bed.table.refresh()
  expect(await ids(bed.table)).toEqual([1])
  for (const { manifestPath } of await liveFiles(bed.table)) expect(await filesBelow(bed.table)).toContain(manifestPath)
})

test('only manifests that may hold a removed file are read and written', async () => {
  const bed = await newBed({ partitionSpec: byP, properties: unmerged })
  for (const [id, p] of ['a', 'b', 'c', null, 'd'].entries()) await bed.table.append(one(id, p))
  const live = await liveFiles(bed.table)
  for (const n of [1, 3]) {
    bed.record.clear()
    const entry = live[n] ?? expect.fail()
    await commit(bed, { added: [], removed: [{ file: entry.file }] })
    expect(bed.record.manifestsRead()).toEqual([entry.manifestPath])
    expect(bed.record.manifestsWritten()).toHaveLength(1)
  }
  expect(await ids(bed.table)).toEqual([0, 2, 4])
})

test('a manifest that is known to hold the file is the only one that is read', async () => {
  const bed = await newBed({ properties: unmerged })
  for (const id of [0, 1, 2]) await bed.table.append(one(id))
  const [, entry = expect.fail()] = await liveFiles(bed.table)
  bed.record.clear()
  await commit(bed, { added: [], removed: [entry] })
  expect(bed.record.manifestsRead()).toEqual([entry.manifestPath])
  expect(await ids(bed.table)).toEqual([0, 2])
})

test('a file that is not where it should be by its partition is found all the same', async () => {
  const bed = await newBed({ partitionSpec: byP, properties: unmerged })
  for (const [id, p] of ['a', 'b'].entries()) await bed.table.append(one(id, p))
  const [entry = expect.fail()] = await liveFiles(bed.table)
  await commit(bed, { added: [], removed: [{ file: { ...entry.file, partition: ['zzz'] } }] })
  expect(await ids(bed.table)).toEqual([1])
})

test.each([1, 2, 3] as const)('in v%i what was made in one try is kept in the next', async (formatVersion) => {
  const properties = { ...unmerged, 'commit.retry.num-retries': '10' }
  const bed = await newBed({ formatVersion, partitionSpec: byP, properties })
  for (const [id, p] of ['a', 'b', 'c', 'd'].entries()) await bed.table.append([...one(id, p), ...one(id + 10, p)])
  const partitionOf = ({ file }: ManifestEntry): string => String(file.partition[0])
  const live = (await liveFiles(bed.table)).toSorted((a, b) => partitionOf(a).localeCompare(partitionOf(b)))
  const hasDeletes = formatVersion > 1
  if (hasDeletes) await bed.table.deletePositions(new Map(live.map(({ file }) => [file.filePath, [1]])))
  const other = await openTable(bed.catalog, bed.table.loaded.identifier, { duckDb })
  const litter = new Set(await filesBelow(bed.table))
  let madeFirst: string[] = []
  const outcome = await commit(bed, { added: [], removed: live.slice(0, 3), operation: 'replace' }, async () => {
    madeFirst = bed.record.manifestsWritten()
    await other.append(one(20, 'z'))
    for (const path of await filesBelow(other)) if (!madeFirst.includes(path)) litter.add(path)
    bed.record.clear()
  })
  expect(outcome).toMatchObject({ outcome: 'applied', attempts: 2 })
  expect(madeFirst.length).toBeGreaterThanOrEqual(hasDeletes ? 4 : 3)
  expect(bed.record.manifestsRead()).toEqual([])
  expect(bed.record.manifestsWritten()).toEqual([])
  expect(await ids(bed.table)).toEqual(hasDeletes ? [3, 20] : [3, 13, 20])
  const head = bed.table.metadata.snapshots.at(-1)
  expect(head?.summary).toMatchObject({
    operation: 'replace',
    'deleted-data-files': '3',
    'deleted-records': '6',
    'total-records': '3',
    'total-data-files': '2',
    ...(hasDeletes && { 'removed-position-deletes': '3', 'total-position-deletes': '1' }),
  })
  const gone = (await entriesOf(bed.table, true)).filter((entry) => entry.status === 'deleted')
  expect(gone.map((entry) => entry.snapshotId)).toEqual(gone.map(() => head?.snapshotId))
  const needed = new Set([head?.manifestList, ...(await manifestPaths(bed.table)), bed.table.loaded.metadataLocation])
  const left = (await filesBelow(bed.table)).filter((path) => !litter.has(path) && !needed.has(path))
  expect(left.filter((path) => path.endsWith('.avro'))).toEqual([])
})

async function manifestPaths({ loaded }: Table): Promise<string[]> {
  const head = loaded.metadata.snapshots.at(-1) ?? expect.fail()
  return (await manifestsOf(loaded, head)).map(({ manifestPath }) => manifestPath)
}

test('manifests that were merged in one try are not merged again in the next', async () => {
  const bed = await newBed({
    properties: {
      'commit.manifest.min-count-to-merge': '3',
      'commit.manifest-merge.enabled': 'false',
      'commit.retry.min-wait-ms': '1',
    },
  })
  for (const id of [0, 1, 2, 3, 4, 5]) await bed.table.append(one(id))
  const [length = 0] = (await manifestLengths(bed.table)).toSorted((a, b) => b - a)
  await bed.table.setProperties({
    'commit.manifest-merge.enabled': 'true',
    'commit.manifest.target-size-bytes': String(length * 3),
  })
  const added = await liveFiles(bed.table)
  const again = added.map(({ file }) => ({ ...file, filePath: `${file.filePath}.copy` }))
  for (const { file } of added) {
    await bed.record.storage.write(`${file.filePath}.copy`, await bed.record.storage.read(file.filePath))
  }
  const other = await openTable(bed.catalog, bed.table.loaded.identifier, { duckDb })
  await commit(bed, { added: again.slice(0, 1) }, async () => {
    await other.setProperties({ other: 'commit' })
    bed.record.clear()
  })
  expect(bed.record.manifestsRead()).toEqual([])
  expect(bed.record.manifestsWritten()).toEqual([])
  expect((await manifestPaths(bed.table)).length).toBeLessThan(7)
  expect(await ids(bed.table)).toEqual([0, 0, 1, 2, 3, 4, 5])
})

async function manifestLengths({ loaded }: Table): Promise<number[]> {
  const head = loaded.metadata.snapshots.at(-1) ?? expect.fail()
  return (await manifestsOf(loaded, head)).map(({ manifestLength }) => manifestLength)
}

test('rows that get their ids between two tries keep them', async () => {
  const bed = await newBed({ formatVersion: 2, partitionSpec: byP, properties: unmerged })
  await bed.table.append([...one(0, 'a'), ...one(1, 'b')])
  await bed.table.upgradeFormatVersion(3)
  const other = await openTable(bed.catalog, bed.table.loaded.identifier, { duckDb })
  const [goes = expect.fail(), stays = expect.fail()] = await liveFiles(bed.table)
  const rowIdOf = async (table: Table): Promise<bigint | undefined> =>
    (await liveFiles(table)).find(({ file }) => file.filePath === stays.file.filePath)?.file.firstRowId
  await commit(bed, { added: [], removed: [goes], operation: 'delete' }, async () => {
    await other.append(one(2, 'c'))
  })
  const given = await rowIdOf(other)
  expect(given).toBeDefined()
  expect(await rowIdOf(bed.table)).toBe(given)
})

test('a delete file takes the sequence number it is given', async () => {
  const bed = await newBed({ properties: unmerged })
  await bed.table.append(one(0))
  const [data = expect.fail()] = await liveFiles(bed.table)
  await bed.table.deletePositions(new Map([[data.file.filePath, [0]]]))
  await bed.table.append(one(1))
  const old = (await liveFiles(bed.table)).find(({ file }) => file.content !== 'data') ?? expect.fail()
  await bed.record.storage.write(`${old.file.filePath}.copy`, await bed.record.storage.read(old.file.filePath))
  await commit(bed, {
    added: [{ ...old.file, filePath: `${old.file.filePath}.copy` }],
    removed: [old],
    operation: 'replace',
    deleteSequenceNumber: () => old.sequenceNumber,
  })
  const now = (await liveFiles(bed.table)).filter(({ file }) => file.content !== 'data')
  expect(now).toMatchObject([{ sequenceNumber: old.sequenceNumber, fileSequenceNumber: 4n }])
  expect(await ids(bed.table)).toEqual([1])
})
