import { applyUpdates } from '../metadata/apply-updates.ts'
import { IcebergError } from '../errors.ts'
import { isAncestor } from '../metadata/ancestry.ts'
import type { SnapshotRef } from '../metadata/snapshot.ts'
import { mainBranch, type TableMetadata } from '../metadata/table-metadata.ts'
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
 * which is what was wanted. `base` is the table that they were made for: what others did later must not hide an effect.
 */
export function showsUpdates(
  metadata: TableMetadata,
  updates: readonly MetadataUpdate[],
  base?: TableMetadata,
): boolean {
  const added = updates.flatMap((update) => (update.action === 'add-snapshot' ? [update.snapshot.snapshotId] : []))
  if (added.length > 0) return added.every((snapshotId) => knowsSnapshot(metadata, snapshotId))
  const evolution = updates.filter(isEvolution)
  return (
    updates.every((update) => isEvolution(update) || showsUpdate(metadata, update, base)) &&
    (evolution.length === 0 || showsEvolution(metadata, evolution) || gained(metadata, evolution, base))
  )
}

const evolutions = [
  'assign-uuid',
  'upgrade-format-version',
  'add-schema',
  'set-current-schema',
  'remove-schemas',
  'add-spec',
  'set-default-spec',
  'remove-partition-specs',
  'add-sort-order',
  'set-default-sort-order',
] as const
type Evolution = Extract<MetadataUpdate, { action: (typeof evolutions)[number] }>

function isEvolution(update: MetadataUpdate): update is Evolution {
  return (evolutions as readonly string[]).includes(update.action)
}

/** Whether applying them once more would change nothing. */
function showsEvolution(metadata: TableMetadata, updates: readonly Evolution[]): boolean {
  try {
    return shapeOf(applyUpdates(metadata, updates, { nowMs: 0 })) === shapeOf(metadata)
  } catch (error) {
    if (error instanceof IcebergError) return false
    throw error
  }
}

/** Schemas, specs and orders are never changed once they are there, so their ids say which there are. */
function shapeOf(metadata: TableMetadata): string {
  return JSON.stringify([
    metadata.formatVersion,
    metadata.tableUuid,
    metadata.schemas.map((schema) => schema.schemaId),
    metadata.currentSchemaId,
    metadata.partitionSpecs.map((spec) => spec.specId),
    metadata.defaultSpecId,
    metadata.sortOrders.map((order) => order.orderId),
    metadata.defaultSortOrderId,
  ])
}

/** Whether everything they add is there, and some of it was not there before: others may have changed it since. */
function gained(metadata: TableMetadata, updates: readonly Evolution[], base: TableMetadata | undefined): boolean {
  const adds = updates.filter((update) => update.action.startsWith('add-'))
  const others = updates.filter((update) => !/^(add|set)-/.test(update.action))
  if (base === undefined || adds.length === 0 || !showsEvolution(metadata, others)) return false
  return adds.every((update) => showsEvolution(metadata, [update])) && adds.some((u) => !showsEvolution(base, [u]))
}

function showsUpdate(
  metadata: TableMetadata,
  update: Exclude<MetadataUpdate, Evolution>,
  base: TableMetadata | undefined,
): boolean {
  switch (update.action) {
    case 'add-snapshot':
      return knowsSnapshot(metadata, update.snapshot.snapshotId)
    case 'remove-snapshots': {
      const removed = new Set(update.snapshotIds)
      return metadata.snapshots.every((snapshot) => !removed.has(snapshot.snapshotId))
    }
    case 'set-snapshot-ref':
      if (sameRef(metadata.refs.get(update.refName), update.ref)) return true
      if (base === undefined || update.ref.type !== 'branch') return false
      if (update.refName === mainBranch) return mainWasAt(metadata, update.ref.snapshotId, base)
      return branchWasAt(metadata, update.refName, update.ref.snapshotId, base)
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
  }
}

/** Whether main was moved to the snapshot after `base`. A rollback done twice would undo what others have committed on it. */
function mainWasAt(metadata: TableMetadata, snapshotId: bigint, base: TableMetadata): boolean {
  const before = new Set(base.snapshotLog.map((entry) => `${entry.timestampMs} ${entry.snapshotId}`))
  return metadata.snapshotLog.some(
    (entry) => entry.snapshotId === snapshotId && !before.has(`${entry.timestampMs} ${entry.snapshotId}`),
  )
}

/** The same of another branch, which has no log: its head descends from the snapshot in a way that it did not before. */
function branchWasAt(metadata: TableMetadata, branch: string, snapshotId: bigint, base: TableMetadata): boolean {
  const before = base.refs.get(branch)?.snapshotId
  const now = metadata.refs.get(branch)?.snapshotId
  if (before === undefined || !isAncestor(metadata, now, snapshotId)) return false
  return !isAncestor(base, before, snapshotId) || !isAncestor(metadata, now, before)
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
