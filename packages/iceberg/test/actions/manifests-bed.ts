import { afterAll, beforeAll, expect } from 'vitest'
import {
  createTable,
  DuckDb,
  HadoopCatalog,
  manifestsOf,
  openTable,
  readManifest,
  scanRows,
  type Catalog,
  type FolderStorage,
  type ManifestEntry,
  type ManifestFile,
  type NewTable,
  type Snapshot,
  type Table,
} from '../../src/index.ts'
import { faultyStorage, memoryBucket, type Fault } from '../commit/faults.ts'
import { field } from '../write/bed.ts'

const schema: NewTable['schema'] = {
  fields: [field(1, 'id', { type: 'long' }), field(2, 'p', { type: 'string' }), field(3, 'q', { type: 'int' })],
}
const byPAndQ: NonNullable<NewTable['partitionSpec']> = {
  fields: [
    { fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } },
    { fieldId: 1001, sourceId: 3, name: 'q', transform: { name: 'identity' } },
  ],
}
/** Commits leave manifests as they are, and wait for nothing. */
const untouched = {
  'commit.manifest-merge.enabled': 'false',
  'commit.retry.min-wait-ms': '1',
  'commit.status-check.min-wait-ms': '1',
}

export const row = (id: number, p: string | null = 'a', q: number | null = 0) => ({ id: BigInt(id), p, q })

export type Live = ManifestEntry & { readonly manifestPath: string }

/** Tables in a bucket in memory, of which any call can be made to fail. */
export function manifestsBed() {
  let opened: DuckDb | undefined
  const duckDb = (): DuckDb => opened ?? expect.fail('the bed is made before all tests')
  beforeAll(async () => {
    opened = await DuckDb.open({ threads: 1 })
  })
  afterAll(() => opened?.close())
  const catalogOn = (storage: FolderStorage, fault?: Fault): Catalog =>
    new HadoopCatalog({
      name: 'files',
      warehouse: 's3://bucket/w',
      storage: fault === undefined ? storage : faultyStorage(storage, fault),
      writeToObjectStore: true,
    })
  const identifier = { namespace: ['db'], name: 't' }
  return {
    duckDb,
    catalogOn,
    newTable: async (given: Omit<NewTable, 'schema'>) => {
      const storage = memoryBucket()
      const catalog = catalogOn(storage)
      await catalog.createNamespace(['db'])
      const { properties, ...rest } = given
      const options: NewTable = { schema, partitionSpec: byPAndQ, ...rest, properties: { ...untouched, ...properties } }
      const table = await createTable(catalog, identifier, options, { duckDb: duckDb() })
      const other = (): Promise<Table> => openTable(catalog, identifier, { duckDb: duckDb() })
      return { table, catalog, storage, other }
    },
    /** Rows as text, in an order, with their ids in v3. */
    rowsOf: async ({ loaded }: Table, snapshotId?: bigint): Promise<string[]> => {
      const rows: string[] = []
      const lineage = loaded.metadata.formatVersion === 3
      const options = {
        duckDb: duckDb(),
        ...(snapshotId !== undefined && { snapshotId }),
        ...(lineage && { metadataColumns: ['_row_id', '_last_updated_sequence_number'] as const }),
      }
      for await (const batch of scanRows(loaded, options)) {
        for (const each of batch) rows.push(Object.values(each).map(String).join(' '))
      }
      return rows.toSorted()
    },
  }
}

export const headOf = ({ metadata }: Table): Snapshot =>
  metadata.snapshots.find(({ snapshotId }) => snapshotId === metadata.currentSnapshotId) ?? expect.fail()

export async function manifestsIn(
  table: Table,
  content: ManifestFile['content'] = 'data',
  snapshot = headOf(table),
): Promise<ManifestFile[]> {
  return (await manifestsOf(table.loaded, snapshot)).filter((manifest) => manifest.content === content)
}

/** The live files of the head, with the manifests they are in. */
export async function liveIn({ loaded }: Table, snapshot: Snapshot): Promise<Live[]> {
  const live: Live[] = []
  for (const manifest of await manifestsOf(loaded, snapshot)) {
    const { manifestPath } = manifest
    for (const entry of readManifest(await loaded.storage.read(manifestPath), manifest)) {
      live.push(Object.assign(entry, { manifestPath }))
    }
  }
  return live
}

/** What must be the same of every file, wherever it is written down. */
export async function identities(table: Table): Promise<string[]> {
  const live = await liveIn(table, headOf(table))
  return live
    .map(({ file, snapshotId, sequenceNumber, fileSequenceNumber }) =>
      [file.filePath, file.contentOffset, snapshotId, sequenceNumber, fileSequenceNumber, file.firstRowId].join(' '),
    )
    .toSorted()
}

/** Every file that the table refers to, or these snapshots of it. */
export async function referredFiles(table: Table, snapshots = table.metadata.snapshots): Promise<Set<string>> {
  const { metadata, metadataLocation } = table.loaded
  const files = new Set<string>([metadataLocation ?? '', `${metadata.location}/metadata/version-hint.text`])
  for (const { metadataFile } of metadata.metadataLog) files.add(metadataFile)
  for (const snapshot of snapshots) {
    files.add(snapshot.manifestList ?? '')
    for (const { manifestPath, file } of await liveIn(table, snapshot)) files.add(manifestPath).add(file.filePath)
    for (const { manifestPath } of await manifestsOf(table.loaded, snapshot)) files.add(manifestPath)
  }
  return files
}
