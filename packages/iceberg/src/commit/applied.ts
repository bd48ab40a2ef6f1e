import type { SnapshotRef } from '../metadata/snapshot.ts'
import type { TableMetadata } from '../metadata/table-metadata.ts'
import type { MetadataUpdate } from '../metadata/update.ts'

/**
 * Whether a snapshot has ever been part of the table, as far as it remembers: it may have been replaced, rolled back or
 * expired by others since.
 */
export function knowsSnapshot(metadata: TableMetadata, snapshotId: bigint): boolean {
  return (
    metadata.snapshots.some((s) => s.snapshotId === snapshotId || s.parentSnapshotId === snapshotId) ||
    metadata.snapshotLog.some((entry) => entry.snapshotId === snapshotId) ||
    [...metadata.refs.values()].some((ref) => ref.snapshotId === snapshotId)
  )
}

/**
 * Whether the table shows what the updates do. A snapshot shows who made it; of the others only the effect can be seen,
 * which is what was wanted. Undefined: it cannot be told.
 */
export function showsUpdates(metadata: TableMetadata, updates: readonly MetadataUpdate[]): boolean | undefined {
  const added = updates.flatMap((update) => (update.action === 'add-snapshot' ? [update.snapshot.snapshotId] : []))
  if (added.length > 0) return added.every((snapshotId) => knowsSnapshot(metadata, snapshotId))
  let all = true
  for (const update of updates) {
    const shown = showsUpdate(metadata, update)
    if (shown === undefined) return undefined
    all &&= shown
  }
  return all
}

function showsUpdate(metadata: TableMetadata, update: MetadataUpdate): boolean | undefined {
  switch (update.action) {
    case 'remove-snapshots':
      return metadata.snapshots.every((snapshot) => !update.snapshotIds.includes(snapshot.snapshotId))
    case 'set-snapshot-ref':
      return sameRef(metadata.refs.get(update.refName), update.ref)
    case 'remove-snapshot-ref':
      return !metadata.refs.has(update.refName)
    case 'set-properties':
      return Object.entries(update.updates).every(([key, value]) => metadata.properties[key] === value)
    case 'remove-properties':
      return update.removals.every((key) => !(key in metadata.properties))
    case 'set-location':
      return metadata.location === update.location
    case 'set-statistics':
      return metadata.statistics.some((file) => file.statisticsPath === update.statistics.statisticsPath)
    case 'remove-statistics':
      return metadata.statistics.every((file) => file.snapshotId !== update.snapshotId)
    case 'set-partition-statistics':
      return metadata.partitionStatistics.some(
        (file) => file.statisticsPath === update.partitionStatistics.statisticsPath,
      )
    case 'remove-partition-statistics':
      return metadata.partitionStatistics.every((file) => file.snapshotId !== update.snapshotId)
    default:
      return undefined
  }
}

function sameRef(ref: SnapshotRef | undefined, wanted: SnapshotRef): boolean {
  return (
    ref?.snapshotId === wanted.snapshotId &&
    ref.type === wanted.type &&
    ref.minSnapshotsToKeep === wanted.minSnapshotsToKeep &&
    ref.maxSnapshotAgeMs === wanted.maxSnapshotAgeMs &&
    ref.maxRefAgeMs === wanted.maxRefAgeMs
  )
}
