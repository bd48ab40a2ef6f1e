import {
  createTable,
  findSnapshot,
  HadoopCatalog,
  manifestsOf,
  openTable,
  readManifest,
  type Catalog,
  type ContentFile,
  type FolderStorage,
  type LoadedTable,
  type NewTable,
  type Snapshot,
  type SnapshotOptions,
  type Table,
} from '../../src/index.ts'
import { Fault, faultyStorage, memoryBucket } from '../commit/faults.ts'
import { field } from '../write/bed.ts'

// Tables in a bucket in memory whose data files hold nothing: actions on snapshots and orphans look at paths only.

export const dayMs = 24 * 60 * 60 * 1000
const warehouse = 's3://bucket/w'

export interface Lake {
  readonly storage: ReturnType<typeof memoryBucket>
  readonly catalog: Catalog
  readonly table: Table
  /** A second handle, for others that change the table meanwhile. */
  readonly other: Table
}

export function catalogOn(storage: FolderStorage): Catalog {
  return new HadoopCatalog({ name: 'files', warehouse, storage, writeToObjectStore: true })
}

export async function lake(table: Partial<NewTable> = {}, storage = memoryBucket()): Promise<Lake> {
  const catalog = catalogOn(storage)
  await catalog.createNamespace(['db'])
  const identifier = { namespace: ['db'], name: 't' }
  const created = await createTable(catalog, identifier, {
    schema: { fields: [field(1, 'id', { type: 'long' })] },
    formatVersion: 2,
    ...table,
    properties: {
      'commit.retry.min-wait-ms': '1',
      'commit.retry.num-retries': '4',
      'write.metadata.previous-versions-max': '1000',
      ...table.properties,
    },
  })
  return { storage, catalog, table: created, other: await openTable(catalog, identifier) }
}

/** A bucket whose files are ten days old, but for those whose age is set. */
export function agedBucket(): ReturnType<typeof memoryBucket> & { readonly ages: Map<string, number> } {
  const bucket = memoryBucket()
  const ages = new Map<string, number>()
  return {
    ...bucket,
    ages,
    async *list(folder) {
      for await (const file of bucket.list(folder)) {
        yield { ...file, modifiedAt: new Date(Date.now() - (ages.get(file.location) ?? 10 * dayMs)) }
      }
    },
  }
}

/** The same table in a bucket of its own. */
export async function copyOf({ storage, table }: Lake, copy = memoryBucket()): Promise<Lake> {
  for (const [path, content] of storage.files) await copy.write(path, content)
  const catalog = catalogOn(copy)
  const { identifier } = table.loaded
  return {
    storage: copy,
    catalog,
    table: await openTable(catalog, identifier),
    other: await openTable(catalog, identifier),
  }
}

export function contentFile(filePath: string, content: Partial<ContentFile> = {}): ContentFile {
  return {
    content: 'data',
    filePath,
    fileFormat: 'parquet',
    specId: 0,
    partition: [],
    recordCount: 1,
    fileSizeInBytes: 4,
    ...content,
  }
}

export function dataPath({ metadata }: Pick<Table, 'metadata'>, name: string): string {
  return `${metadata.location}/data/${name}.parquet`
}

/** Writes a data file and appends it. */
export async function append(
  { table, storage }: Pick<Lake, 'table' | 'storage'>,
  name: string,
  options: SnapshotOptions = {},
): Promise<Snapshot> {
  const path = dataPath(table, name)
  await storage.write(path, Buffer.from('file'))
  const snapshot = await table.appendFiles([contentFile(path)], options)
  if (snapshot === undefined) throw new Error('nothing was appended')
  return snapshot
}

/** Everything that the snapshots of a table refer to, read with the readers that scans use. */
export async function reachableOf(loaded: LoadedTable, snapshots = loaded.metadata.snapshots): Promise<Set<string>> {
  const files = new Set<string>()
  for (const { snapshotId } of snapshots) {
    const snapshot = findSnapshot(loaded.metadata, snapshotId)
    if (snapshot === undefined) throw new Error(`${snapshotId} is gone`)
    if (snapshot.manifestList !== undefined) files.add(snapshot.manifestList)
    for (const manifest of await manifestsOf(loaded, snapshot)) {
      files.add(manifest.manifestPath)
      const content = await loaded.storage.read(manifest.manifestPath)
      for (const { file } of readManifest(content, manifest)) files.add(file.filePath)
    }
  }
  for (const file of [...loaded.metadata.statistics, ...loaded.metadata.partitionStatistics]) {
    files.add(file.statisticsPath)
  }
  return files
}

/** The files below the table that are neither metadata nor of a list of deletions. */
export function contentOf({ storage }: Pick<Lake, 'storage'>): string[] {
  return [...storage.files.keys()].filter((path) => !/\.metadata\.json$|version-hint\.text$/.test(path)).toSorted()
}

/** A catalog whose storage fails at one call, and which counts its calls. */
export function faultyCatalog(storage: FolderStorage, fault: Fault): Catalog {
  return catalogOn(faultyStorage(storage, fault))
}

export function sorted(paths: Iterable<string>): string[] {
  return [...paths].toSorted()
}
