import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile, ManifestEntry } from '../manifests/content-file.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import { partitionTypesOf } from '../manifests/partition-type.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import type { DuckDb } from '../parquet/duckdb.ts'
import { PositionSet } from '../puffin/position-set.ts'
import { onlyPath } from '../snapshot/delete.ts'
import { manifestsOf } from '../snapshot/live-files.ts'
import { readManifests } from '../snapshot/read-manifests.ts'
import { forEachLimited } from '../storage/each.ts'
import type { SnapshotChange } from './build-snapshot.ts'
import { notLive } from './not-live.ts'
import { readPositions, readVector, writePositionFiles, writeVectors, type DeleteTarget } from './position-files.ts'

/** Rows by the file they are in and their position there, from 0. */
export type Positions = ReadonlyMap<string, Iterable<number>>

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

async function targetsOf(
  table: LoadedTable,
  head: Snapshot | undefined,
  positions: Positions,
): Promise<DeleteTarget[]> {
  const wanted = new Map([...positions].map(([path, list]) => [path, new PositionSet(list)]))
  const targets: DeleteTarget[] = []
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

/** A data file has one vector at most: what it has already, also in files from before v3, goes into the new one. */
async function mergeVectors(
  duckdb: DuckDb,
  table: LoadedTable,
  head: Snapshot | undefined,
  targets: readonly DeleteTarget[],
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
  const added = await writeVectors(table, targets)
  return {
    added,
    removed: replaced,
    operation: 'delete',
    files: added.slice(0, 1).map((file) => file.filePath),
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

function concerns(file: ContentFile, sequenceNumber: bigint, target: DeleteTarget, only: string | undefined): boolean {
  const data = target.entry
  if (data.sequenceNumber > sequenceNumber) return false
  if (only !== undefined) return only === data.file.filePath
  return partitionKey(file.specId, file.partition) === partitionKey(data.file.specId, data.file.partition)
}
