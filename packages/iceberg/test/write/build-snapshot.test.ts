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
import { field, filesBelow } from './bed.ts'

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
