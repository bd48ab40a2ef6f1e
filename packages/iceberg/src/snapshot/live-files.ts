import type { LoadedTable } from '../catalogs/catalog.ts'
import type { ManifestEntry } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import { partitionTypesOf, type PartitionTypeField } from '../manifests/partition-type.ts'
import { manifestPartitionType, readManifest, type ReadManifestOptions } from '../manifests/read-manifest.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import { manifestsOf as manifestsOfSnapshot } from './manifests-of.ts'

/** The manifests of a snapshot; none of a table without one. */
export async function manifestsOf(table: LoadedTable, snapshot: Snapshot | undefined): Promise<ManifestFile[]> {
  if (snapshot === undefined) return []
  if (snapshot.manifestList !== undefined) return await manifestsOfSnapshot(table, snapshot)
  return await Promise.all((snapshot.manifests ?? []).map((path) => describeManifest(table, path, snapshot.snapshotId)))
}

/** Old snapshots of v1 name their manifests and say nothing of them: what a manifest list would say is counted. */
async function describeManifest(table: LoadedTable, manifestPath: string, snapshotId: bigint): Promise<ManifestFile> {
  const content = await table.storage.read(manifestPath)
  const entries = readManifest(
    content,
    { manifestPath, addedSnapshotId: snapshotId },
    { deleted: true, statistics: false },
  )
  const count = (status: ManifestEntry['status']): { files: number; rows: number } => {
    const of = entries.filter((entry) => entry.status === status)
    return { files: of.length, rows: of.reduce((sum, entry) => sum + entry.file.recordCount, 0) }
  }
  const [added, existing, deleted] = [count('added'), count('existing'), count('deleted')]
  return {
    manifestPath,
    manifestLength: content.length,
    partitionSpecId: entries[0]?.file.specId ?? 0,
    content: 'data',
    sequenceNumber: 0n,
    minSequenceNumber: 0n,
    addedSnapshotId: entries[0]?.snapshotId ?? snapshotId,
    addedFilesCount: added.files,
    existingFilesCount: existing.files,
    deletedFilesCount: deleted.files,
    addedRowsCount: added.rows,
    existingRowsCount: existing.rows,
    deletedRowsCount: deleted.rows,
  }
}

/** The entries of a manifest, with partition values typed by the table's own spec. */
export async function entriesOf(
  table: LoadedTable,
  manifest: ManifestFile,
  options: ReadManifestOptions = {},
): Promise<ManifestEntry[]> {
  const partition = options.partition ?? partitionTypesOf(table.metadata, manifest.partitionSpecId)
  return readManifest(await table.storage.read(manifest.manifestPath), manifest, { ...options, partition })
}

/**
 * The same for the specs of a snapshot, to write its values again. Schemas are removed from tables in time: the types of
 * columns that no schema has any more are those that the newest manifest of the spec has them with.
 */
export function partitionTypesIn(
  table: LoadedTable,
  manifests: readonly ManifestFile[],
): (specId: number) => Promise<readonly PartitionTypeField[]> {
  const known = new Map<number, Promise<readonly PartitionTypeField[]>>()
  const find = async (specId: number): Promise<readonly PartitionTypeField[]> => {
    let types = partitionTypesOf(table.metadata, specId)
    const newestFirst = manifests
      .filter((manifest) => manifest.partitionSpecId === specId)
      .toSorted((a, b) => Number((b.sequenceNumber ?? 0n) - (a.sequenceNumber ?? 0n)))
    for (const { manifestPath } of newestFirst) {
      if (types.every(({ type }) => type.type !== 'unknown')) return types
      const own = manifestPartitionType(await table.storage.read(manifestPath), manifestPath)
      types = types.map((field) =>
        field.type.type === 'unknown' ? { ...field, type: own.get(field.fieldId) ?? field.type } : field,
      )
    }
    return types
  }
  return (specId) => {
    const types = known.get(specId) ?? find(specId)
    known.set(specId, types)
    return types
  }
}
