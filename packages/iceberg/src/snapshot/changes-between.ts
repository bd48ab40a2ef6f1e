import { IcebergError } from '../errors.ts'
import type { ManifestEntry } from '../manifests/content-file.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import { partitionTypesOf } from '../manifests/partition-type.ts'
import { ancestorsOf } from '../metadata/ancestry.ts'
import type { Snapshot } from '../metadata/snapshot.ts'
import { manifestsOf, type ScannedTable } from './manifests-of.ts'
import { readManifests } from './read-manifests.ts'

/** Files that one snapshot added or deleted, all by the same manifest. */
export interface FileChanges {
  readonly snapshot: Snapshot
  readonly manifest: ManifestFile
  /** Their status is added or deleted. */
  readonly entries: readonly ManifestEntry[]
}

export interface ChangesOptions {
  /** Also counts, sizes and bounds by column. Default: false. */
  readonly statistics?: boolean
  /** Manifests that are fetched at the same time. Default 8. */
  readonly concurrency?: number
  readonly signal?: AbortSignal
}

/**
 * What the snapshots after `from`, up to and with `to`, added and deleted, oldest first. Without `from`: since the table
 * was empty. A file that was added and deleted in between comes twice, and so do files that were only rewritten: the
 * operation of the snapshot tells. Only manifests that these snapshots wrote are read.
 */
export async function* changesBetween(
  table: ScannedTable,
  from: bigint | undefined,
  to: bigint,
  options: ChangesOptions = {},
): AsyncGenerator<FileChanges> {
  const { metadata, storage } = table
  const { statistics = false, concurrency, signal } = options
  const reading = { partitionOf: (specId: number) => partitionTypesOf(metadata, specId), statistics, deleted: true }
  for (const snapshot of snapshotsBetween(table, from, to)) {
    signal?.throwIfAborted()
    const { snapshotId } = snapshot
    const own = (await manifestsOf(table, snapshot)).filter((manifest) => manifest.addedSnapshotId === snapshotId)
    for await (const { manifest, entries } of readManifests(storage, own, { ...reading, concurrency, signal })) {
      // A manifest that was merged also has entries of the snapshots before.
      const changes = entries.filter((entry) => entry.status !== 'existing' && entry.snapshotId === snapshotId)
      if (changes.length > 0) yield { snapshot, manifest, entries: changes }
    }
  }
}

/** The snapshots after one up to another, oldest first. */
function snapshotsBetween({ metadata }: ScannedTable, from: bigint | undefined, to: bigint): Snapshot[] {
  const chain: Snapshot[] = []
  for (const snapshot of ancestorsOf(metadata, to)) {
    if (snapshot.snapshotId === from) return chain.reverse()
    chain.push(snapshot)
  }
  const oldest = chain.at(-1)
  if (from === undefined && oldest !== undefined && oldest.parentSnapshotId === undefined) return chain.reverse()
  const problem =
    oldest === undefined
      ? `snapshot ${to} is not in the table`
      : oldest.parentSnapshotId === undefined
        ? `snapshot ${from} is not among those before ${to}`
        : `snapshot ${oldest.parentSnapshotId}, which came before ${oldest.snapshotId}, was expired`
  throw new IcebergError(
    'scan_invalid',
    `What changed in the table at ${metadata.location} cannot be told: ${problem}.`,
  )
}
