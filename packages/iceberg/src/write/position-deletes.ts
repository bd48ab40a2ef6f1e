import { randomUUID } from 'node:crypto'
import { rm, writeFile as writeLocal } from 'node:fs/promises'
import { join } from 'node:path'
import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import { partitionTypesOf } from '../manifests/partition-type.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import type { Field } from '../schema/type.ts'
import { explained, type DuckDb } from '../parquet/duckdb.ts'
import { loadRows, newRows } from '../parquet/load-rows.ts'
import type { MetricsMode } from '../parquet/metrics-modes.ts'
import { parquetSource } from '../parquet/parquet-table.ts'
import { parseDeletionVector } from '../puffin/deletion-vector.ts'
import { PositionSet } from '../puffin/position-set.ts'
import { writeDeletionVectors } from '../puffin/write-deletion-vectors.ts'
import { readManifests } from '../snapshot/read-manifests.ts'
import { forEachLimited } from '../storage/each.ts'
import { temporaryFolder } from '../storage/temporary-folder.ts'
import type { SnapshotChange } from './build-snapshot.ts'
import { newDataLocation } from './data-location.ts'
import { manifestsOf } from '../snapshot/live-files.ts'
import { notLive } from './not-live.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import { deletePathId, deletePositionId, onlyPath } from '../snapshot/delete.ts'
import { removeFiles } from './remove-files.ts'
import { writeParts, type FileKind, type Part } from './write-files.ts'

/** Rows by the file they are in and their position there, from 0. */
export type Positions = ReadonlyMap<string, Iterable<number>>

const fields: readonly Field[] = [
  { id: deletePathId, name: 'file_path', required: true, type: { type: 'string' } },
  { id: deletePositionId, name: 'pos', required: true, type: { type: 'long' } },
]
// Never cut: readers tell by equal bounds of the path that a file of deletes is for one data file.
const modes = new Map<number, MetricsMode>([
  [deletePathId, { mode: 'full' }],
  [deletePositionId, { mode: 'full' }],
])

/**
 * What deletes rows by their position: deletion vectors in v3, files of positions in v2, for each data file or for each
 * partition. Fails when a data file is no longer there: its rows may be in another by now.
 */
export async function positionDeletes(
  duckdb: DuckDb,
  table: LoadedTable,
  head: Snapshot | undefined,
  positions: Positions,
  granularity: 'file' | 'partition',
): Promise<SnapshotChange> {
  const { formatVersion } = table.metadata
  if (formatVersion === 1) {
    throw new IcebergError(
      'metadata_unsupported',
      `Rows of ${tableName(table.identifier)} cannot be deleted by position: its format version is 1. Upgrade it first.`,
    )
  }
  const targets = await targetsOf(table, head, positions)
  if (targets.length === 0) return { added: [] }
  if (formatVersion === 2) {
    const added = await writePositionFiles(duckdb, table, targets, granularity)
    return { added, operation: 'delete', files: added.map((file) => file.filePath) }
  }
  return await mergeVectors(duckdb, table, head, targets)
}

interface Target {
  readonly entry: ManifestEntry
  readonly positions: PositionSet
}

async function targetsOf(table: LoadedTable, head: Snapshot | undefined, positions: Positions): Promise<Target[]> {
  const wanted = new Map([...positions].map(([path, list]) => [path, new PositionSet(list)]))
  const targets: Target[] = []
  const manifests = (await manifestsOf(table, head)).filter(({ content }) => content === 'data')
  for await (const { entries } of readManifests(table.storage, manifests, {
    partitionOf: typesOf(table),
    statistics: false,
  })) {
    for (const entry of entries) {
      const set = wanted.get(entry.file.filePath)
      if (set !== undefined) targets.push({ entry, positions: checked(entry.file, set) })
    }
    if (targets.length === wanted.size) break
  }
  const found = new Set(targets.map(({ entry }) => entry.file.filePath))
  const missing = [...wanted.keys()].filter((path) => !found.has(path))
  if (missing.length > 0) throw notLive(table, missing)
  return targets.filter((target) => target.positions.size > 0)
}

function checked(file: ContentFile, positions: PositionSet): PositionSet {
  for (const position of positions) {
    if (position >= file.recordCount) {
      throw new IcebergError(
        'value_invalid',
        `${file.filePath} has no row ${position}: it has ${file.recordCount} rows`,
      )
    }
  }
  return positions
}

async function writePositionFiles(
  duckdb: DuckDb,
  table: LoadedTable,
  targets: readonly Target[],
  granularity: 'file' | 'partition',
): Promise<ContentFile[]> {
  const groups = new Map<string, { number: number; part: Part; paths: string[] }>()
  const numbers = new Map<string, number>()
  for (const { entry } of targets) {
    const { filePath, specId, partition } = entry.file
    const key = granularity === 'file' ? filePath : partitionKey(specId, partition)
    const kind: FileKind = { content: 'position-deletes', fields, modes, specId }
    const group = groups.get(key) ?? { number: groups.size, part: { kind, partition }, paths: [] }
    group.paths.push(filePath)
    groups.set(key, group)
    numbers.set(filePath, group.number)
  }
  return await duckdb.using(async (connection) => {
    await loadRows(connection, fields, rowsOf(targets), (row) => numbers.get(String(row['file_path'])) ?? -1)
    const parts = [...groups.values()]
    const orderBy = `order by ${newRows}.c0, ${newRows}.c1`
    const written = await writeParts(
      connection,
      table,
      parts.map(({ part }) => part),
      orderBy,
    )
    return written.flatMap((files, number) => {
      const [path, ...others] = parts[number]?.paths ?? []
      return files.map((file) => (others.length > 0 ? file : { ...file, referencedDataFile: path }))
    })
  })
}

function* rowsOf(targets: readonly Target[]): Generator<{ file_path: string; pos: bigint }> {
  for (const { entry, positions } of targets) {
    for (const position of positions) yield { file_path: entry.file.filePath, pos: BigInt(position) }
  }
}

/** A data file has one vector at most: what it has already, also in files from before v3, goes into the new one. */
async function mergeVectors(
  duckdb: DuckDb,
  table: LoadedTable,
  head: Snapshot | undefined,
  targets: readonly Target[],
): Promise<SnapshotChange> {
  const byPath = new Map(targets.map((target) => [target.entry.file.filePath, target]))
  const replaced: ManifestEntry[] = []
  const entries = await positionDeleteEntries(table, head)
  const vectorsBefore = entries.filter(({ file }) => file.contentOffset !== undefined)
  await forEachLimited(vectorsBefore, 8, async (entry) => {
    const { file } = entry
    const target = byPath.get(onlyPath(file) ?? '')
    if (target === undefined) return
    replaced.push(entry)
    target.positions.addAll(await readVector(table, file))
  })
  const filesBefore = entries.filter(({ file }) => file.contentOffset === undefined)
  await forEachLimited(filesBefore, 4, async (entry) => {
    const { file, sequenceNumber } = entry
    const only = onlyPath(file)
    const target = only === undefined ? undefined : byPath.get(only)
    const concerned = targets.filter((t) => concerns(file, sequenceNumber, t, only))
    if (concerned.length === 0) return
    const read = await readPositions(duckdb, table, file)
    for (const { entry: data, positions: set } of concerned) set.addAll(read.get(data.file.filePath) ?? [])
    if (target !== undefined) replaced.push(entry)
  })
  const vectors = targets.map(({ entry, positions }) => [entry.file.filePath, positions] as const)
  const { content, vectors: written } = writeDeletionVectors(vectors, { 'created-by': 'fencepost' })
  const filePath = newDataLocation(table.metadata, '', '-deletes.puffin')
  try {
    await table.storage.write(filePath, content)
  } catch (error) {
    await removeFiles(table, [filePath]) // it may be there all the same
    throw error
  }
  const added = written.map((vector): ContentFile => {
    const { specId, partition } = byPath.get(vector.referencedDataFile)?.entry.file ?? { specId: -1, partition: [] }
    return {
      content: 'position-deletes',
      filePath,
      fileFormat: 'puffin',
      specId,
      partition,
      recordCount: vector.cardinality,
      fileSizeInBytes: content.length,
      referencedDataFile: vector.referencedDataFile,
      contentOffset: vector.contentOffset,
      contentSizeInBytes: vector.contentSizeInBytes,
    }
  })
  return {
    added,
    removed: replaced,
    operation: 'delete',
    files: [filePath],
  }
}

async function positionDeleteEntries(table: LoadedTable, head: Snapshot | undefined): Promise<ManifestEntry[]> {
  const entries: ManifestEntry[] = []
  const manifests = (await manifestsOf(table, head)).filter(({ content }) => content === 'deletes')
  // Bounds tell which data file position deletes are for.
  for await (const batch of readManifests(table.storage, manifests, {
    partitionOf: typesOf(table),
    statistics: true,
  })) {
    for (const entry of batch.entries) if (entry.file.content === 'position-deletes') entries.push(entry)
  }
  return entries
}

function typesOf({ metadata }: LoadedTable) {
  return (specId: number) => partitionTypesOf(metadata, specId)
}

function concerns(file: ContentFile, sequenceNumber: bigint, target: Target, only: string | undefined): boolean {
  const data = target.entry
  if (data.sequenceNumber > sequenceNumber) return false
  if (only !== undefined) return only === data.file.filePath
  return partitionKey(file.specId, file.partition) === partitionKey(data.file.specId, data.file.partition)
}

async function readVector(table: LoadedTable, file: ContentFile): Promise<PositionSet> {
  const range = { offset: file.contentOffset ?? 0, length: file.contentSizeInBytes ?? 0 }
  return parseDeletionVector(await table.storage.read(file.filePath, range))
}

async function readPositions(duckdb: DuckDb, table: LoadedTable, file: ContentFile): Promise<Map<string, number[]>> {
  if (file.fileFormat.toLowerCase() !== 'parquet') {
    throw new IcebergError(
      'parquet_invalid',
      `${file.filePath} holds deletes as ${file.fileFormat}; only parquet can be read`,
    )
  }
  const folder = await temporaryFolder('deletes')
  try {
    const path = join(folder, `${randomUUID()}.parquet`)
    await writeLocal(path, await table.storage.read(file.filePath))
    const sql = `select file_path, pos::double as pos from ${parquetSource(path)}`
    const rows = await duckdb.using(async (c) => (await explained(c.runAndReadAll(sql))).getRows())
    const positions = new Map<string, number[]>()
    for (const [target, position] of rows) {
      const list = positions.get(String(target)) ?? []
      list.push(Number(position))
      positions.set(String(target), list)
    }
    return positions
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
