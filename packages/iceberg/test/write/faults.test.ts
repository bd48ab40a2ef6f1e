import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import {
  createTable,
  DuckDb,
  findSnapshot,
  HadoopCatalog,
  JdbcCatalog,
  manifestsOf,
  openTable,
  planFiles,
  readManifest,
  scanRows,
  writeDataFiles,
  type Catalog,
  type ContentFile,
  type FolderStorage,
  type FormatVersion,
  type SnapshotOptions,
  type Table,
} from '../../src/index.ts'
import { Fault, faultyPool, faultyStorage, memoryBucket, type FaultMode } from '../commit/faults.ts'
import { field } from './bed.ts'

// Rows are written while any one call to the storage or the catalog fails, and another commit comes first. Afterwards
// the table is whole, and holds the rows exactly if the writer was told so; nothing is left of what failed for good.

const bucket = 's3://bucket'
let database: TestDatabase
let pool: pg.Pool
let duckDb: DuckDb
let count = 0
beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  pool.on('error', () => {})
  duckDb = await DuckDb.open({ threads: 1 })
})
afterAll(async () => {
  await duckDb.close()
  await pool.end()
  await database.drop()
})

type Open = (storage: FolderStorage, fault?: Fault) => Promise<Catalog>
const kinds: Record<string, () => Open> = {
  'a file system catalog': () => async (storage, fault) =>
    new HadoopCatalog({
      name: 'files',
      warehouse: `${bucket}/w`,
      storage: fault === undefined ? storage : faultyStorage(storage, fault),
      writeToObjectStore: true,
    }),
  'a JDBC catalog': () => {
    const name = `c${(count += 1)}`
    return (storage, fault) =>
      JdbcCatalog.open({
        name,
        warehouse: `${bucket}/w`,
        database: fault === undefined ? pool : faultyPool(pool, fault),
        storage: fault === undefined ? storage : faultyStorage(storage, fault),
      })
  },
}

const row = (id: number) => ({ id: BigInt(id) })
const seeded = [0, 1, 2, 3, 4, 5]
const theirs = 100

interface Change {
  formatVersion: FormatVersion
  write: (table: Table, file: string, options: SnapshotOptions) => Promise<unknown>
  /** The ids after it, of those before it. */
  after: (ids: readonly number[]) => number[]
}

const changes: Record<string, Change> = {
  append: {
    formatVersion: 3,
    write: (table, _, options) => table.append([row(10), row(11)], options),
    after: (ids) => [...ids, 10, 11],
  },
  'delete by position in v2': {
    formatVersion: 2,
    write: (table, file, options) => table.deletePositions(new Map([[file, [1, 2]]]), options),
    after: (ids) => ids.filter((id) => id !== 1 && id !== 2),
  },
  'delete by position in v3': {
    formatVersion: 3,
    write: (table, file, options) => table.deletePositions(new Map([[file, [1, 2].values()]]), options),
    after: (ids) => ids.filter((id) => id !== 1 && id !== 2),
  },
  overwrite: {
    formatVersion: 2,
    write: (table, _, options) => table.overwrite([row(20)], options),
    after: () => [20],
  },
  'delete by key': {
    formatVersion: 2,
    write: (table, _, options) =>
      table.deleteEqual(['id'], [row(3), row(theirs)], { ...options, append: [row(theirs)] }),
    after: (ids) => [...ids.filter((id) => id !== 3 && id !== theirs), theirs],
  },
}

interface Bed {
  open: Open
  storage: ReturnType<typeof memoryBucket>
  table: Table
  /** The data file of the rows that are there at first. */
  file: string
  /** A file for another writer to come first with. */
  others: ContentFile[]
  head: bigint
}

async function bedFor(kind: string, { formatVersion }: Change): Promise<Bed> {
  const storage = memoryBucket()
  const open = (kinds[kind] ?? expect.fail())()
  const catalog = await open(storage)
  await catalog.createNamespace(['db'])
  const table = await createTable(
    catalog,
    { namespace: ['db'], name: 't' },
    {
      schema: { fields: [field(1, 'id', { type: 'long' })] },
      formatVersion,
      properties: { 'commit.retry.min-wait-ms': '1', 'write.metadata.previous-versions-max': '10000' },
    },
    { duckDb },
  )
  await table.append(seeded.map(row))
  let file = ''
  for await (const [first] of planFiles(table.loaded)) file = first?.file.filePath ?? file
  await table.deletePositions(new Map([[file, [0]]]))
  const others = await writeDataFiles(duckDb, table.loaded, [row(theirs)])
  return { open, storage, table, file, others, head: table.metadata.currentSnapshotId ?? 0n }
}

type Outcome = 'applied' | 'not_applied' | 'unknown'

/** One change with the n-th call failing, from the same snapshot every time; then what is there is compared. */
async function changeWithFault(bed: Bed, change: Change, at: number, mode: FaultMode) {
  const { table, storage, file, others } = bed
  await table.setSnapshot(bed.head)
  // Without it versions have to be listed.
  await storage.delete([`${table.metadata.location}/metadata/version-hint.text`])
  let armed = new Fault(Number.POSITIVE_INFINITY, 'before')
  const fault = { call: (...args: Parameters<Fault['call']>) => armed.call(...args) } as Fault
  const faulty = await openTable(await bed.open(storage, fault), table.loaded.identifier, { duckDb })
  const before = new Set(storage.files.keys())
  let met = false
  const guard = async (): Promise<void> => {
    if (met) return
    met = true
    await table.appendFiles(others)
  }
  armed = new Fault(at, mode)
  const outcome = await change.write(faulty, file, { guard, pause: async () => {} }).then(
    (): Outcome => 'applied',
    (error: { code?: string }): Outcome => (error.code === 'commit_unknown' ? 'unknown' : 'not_applied'),
  )
  await table.refresh()
  const first = [...seeded.slice(1), ...(met ? [theirs] : [])]
  const told = { applied: [change.after(first)], not_applied: [first], unknown: [first, change.after(first)] }[outcome]
  expect(told.map(sorted)).toContainEqual(sorted(await idsOf(table)))
  const needed = await filesSince(bed)
  for (const location of needed) expect(storage.files.has(location)).toBe(true)
  // What is unknown is kept, and what cannot be removed stays.
  if (outcome !== 'unknown' && mode !== 'down' && armed.names[at - 1] !== 'delete') {
    const known = new Set([...before, ...needed, ...metadataFiles(table)])
    expect([...storage.files.keys()].filter((location) => !known.has(location))).toEqual([])
  }
  return { calls: armed.names, outcome }
}

const sorted = (ids: readonly number[]): number[] => ids.toSorted((a, b) => a - b)

async function idsOf(table: Table): Promise<number[]> {
  const ids: number[] = []
  for await (const rows of scanRows(table.loaded, { duckDb })) ids.push(...rows.map((r) => Number(r['id'])))
  return ids
}

/** Every file that the snapshots since the first refer to: at most two, theirs and ours. */
async function filesSince({ table, head }: Bed): Promise<Set<string>> {
  const { metadata, storage } = table.loaded
  const files = new Set<string>()
  let since = 0
  for (let id = metadata.currentSnapshotId; id !== undefined && id !== head; since += 1) {
    const snapshot = findSnapshot(metadata, id)
    if (snapshot === undefined) break
    files.add(snapshot.manifestList ?? '')
    for (const manifest of await manifestsOf(table.loaded, snapshot)) {
      files.add(manifest.manifestPath)
      for (const { file } of readManifest(await storage.read(manifest.manifestPath), manifest)) files.add(file.filePath)
    }
    id = snapshot.parentSnapshotId
  }
  expect(since).toBeLessThanOrEqual(2)
  return files
}

/** The metadata files that the table knows, and the hint. */
function metadataFiles({ loaded: { metadata, metadataLocation } }: Table): (string | undefined)[] {
  const hint = `${metadata.location}/metadata/version-hint.text`
  return [metadataLocation, hint, ...metadata.metadataLog.map((entry) => entry.metadataFile)]
}

/** Which calls fail, by their place: of several looks for a file in a row, the first. */
function placesOf(calls: readonly string[]): number[] {
  return calls.flatMap((name, n) => (name === 'exists' && calls[n - 1] === name ? [] : [n + 1]))
}

const cases = [
  ...Object.keys(changes).map((name) => ['a file system catalog', name] as const),
  // The other changes call it in the same way.
  ...['append', 'delete by position in v3'].map((name) => ['a JDBC catalog', name] as const),
]
describe('a writer is told what became of its rows', () => {
  test.each(cases)('whatever fails: %s, %s', { timeout: 120_000 }, async (kind, name) => {
    const change = changes[name] ?? expect.fail()
    const bed = await bedFor(kind, change)
    const sound = await changeWithFault(bed, change, Number.POSITIVE_INFINITY, 'before')
    expect(sound).toMatchObject({ outcome: 'applied', calls: expect.arrayContaining(['write', 'delete']) })
    const places = placesOf(sound.calls)
    for (const mode of ['before', 'after'] as const) {
      const outcomes = new Set<Outcome>()
      for (const at of places) outcomes.add((await changeWithFault(bed, change, at, mode)).outcome)
      expect([...outcomes].toSorted()).toEqual(['applied', 'not_applied'])
    }
    for (const at of places.filter((_, n) => n % 3 === 0)) await changeWithFault(bed, change, at, 'down')
  })
})
