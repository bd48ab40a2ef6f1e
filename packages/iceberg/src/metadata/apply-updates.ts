import { IcebergError } from '../errors.ts'
import { atOnce, type Steps } from '../json/steps.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import {
  addSchema,
  addSortOrder,
  addSpec,
  checkDefaults,
  removeSchemas,
  removeSpecs,
  setCurrentSchema,
  setDefaultSortOrder,
  setDefaultSpec,
} from './apply-schema-updates.ts'
import {
  addSnapshot,
  removeSnapshotRef,
  removeSnapshots,
  setSnapshotRef,
  trimSnapshotLog,
} from './apply-snapshot-updates.ts'
import { type Draft, updateInvalid } from './draft.ts'
import type { TableMetadata } from './table-metadata.ts'
import type { MetadataUpdate } from './update.ts'

export interface ApplyUpdatesOptions {
  /** The present time; the new metadata is never dated before the old. */
  readonly nowMs: number
  /** Where the given metadata was read from: it is added to the metadata log, which is cut to its length. */
  readonly previousLocation?: string
}

/** The metadata after the updates, made as a catalog makes it. The given metadata is not changed. */
export function applyUpdates(
  metadata: TableMetadata,
  updates: readonly MetadataUpdate[],
  options: ApplyUpdatesOptions,
): TableMetadata {
  return atOnce(applyUpdatesSteps(metadata, updates, options))
}

/** The same in steps: a table may have 100,000 snapshots. */
export function* applyUpdatesSteps(
  metadata: TableMetadata,
  updates: readonly MetadataUpdate[],
  options: ApplyUpdatesOptions,
): Steps<TableMetadata> {
  if (updates.length === 0) return metadata
  const draft: Draft = {
    next: { ...metadata, lastUpdatedMs: Math.max(options.nowMs, metadata.lastUpdatedMs) },
    nowMs: options.nowMs,
    added: new Set(),
    passed: new Set(),
    removedSnapshots: false,
  }
  for (const update of joinedRemovals(updates)) {
    if (update.action === 'remove-snapshots') yield* removeSnapshots(draft, update.snapshotIds)
    else applyUpdate(draft, update)
    yield
  }
  checkDefaults(draft)
  yield* trimSnapshotLog(draft)
  if (options.previousLocation !== undefined) {
    const entry = { timestampMs: metadata.lastUpdatedMs, metadataFile: options.previousLocation }
    draft.next.metadataLog = [...metadata.metadataLog, entry].slice(-metadataLogLength(draft.next.properties))
  }
  return draft.next
}

/** Removals of snapshots one after another as one: each looks at all snapshots, and some clients send one for each id. */
function joinedRemovals(updates: readonly MetadataUpdate[]): MetadataUpdate[] {
  const joined: MetadataUpdate[] = []
  let ids: bigint[] | undefined
  for (const update of updates) {
    if (update.action !== 'remove-snapshots') {
      ids = undefined
      joined.push(update)
    } else if (ids === undefined) {
      ids = [...update.snapshotIds]
      joined.push({ action: 'remove-snapshots', snapshotIds: ids })
    } else for (const id of update.snapshotIds) ids.push(id)
  }
  return joined
}

/** How many earlier metadata files the log keeps (`write.metadata.previous-versions-max`, at least 1). */
function metadataLogLength(properties: Readonly<Record<string, string>>): number {
  return Math.max(1, Math.floor(propertyOf({ properties }, tableProperties.previousMetadataMax)))
}

/** The metadata files that `next` no longer mentions: to be deleted if the table says so, after the commit. */
export function droppedMetadataFiles(previous: TableMetadata, next: TableMetadata): string[] {
  const kept = new Set(next.metadataLog.map((entry) => entry.metadataFile))
  return previous.metadataLog.map((entry) => entry.metadataFile).filter((file) => !kept.has(file))
}

function applyUpdate(draft: Draft, update: Exclude<MetadataUpdate, { action: 'remove-snapshots' }>): void {
  switch (update.action) {
    case 'add-schema':
      return addSchema(draft, update.schema)
    case 'set-current-schema':
      return setCurrentSchema(draft, update.schemaId)
    case 'remove-schemas':
      return removeSchemas(draft, update.schemaIds)
    case 'add-spec':
      return addSpec(draft, update.spec)
    case 'set-default-spec':
      return setDefaultSpec(draft, update.specId)
    case 'remove-partition-specs':
      return removeSpecs(draft, update.specIds)
    case 'add-sort-order':
      return addSortOrder(draft, update.sortOrder)
    case 'set-default-sort-order':
      return setDefaultSortOrder(draft, update.sortOrderId)
    case 'add-snapshot':
      return addSnapshot(draft, update.snapshot)
    case 'set-snapshot-ref':
      return setSnapshotRef(draft, update.refName, update.ref)
    case 'remove-snapshot-ref':
      return removeSnapshotRef(draft, update.refName)
    default:
      return applyTableUpdate(draft, update)
  }
}

type TableUpdate = Extract<
  MetadataUpdate,
  | { action: 'assign-uuid' | 'upgrade-format-version' | 'set-location' | 'set-properties' | 'remove-properties' }
  | { action: `${'set' | 'remove'}-${'' | 'partition-'}statistics` }
>

function applyTableUpdate(draft: Draft, update: TableUpdate): void {
  const { next } = draft
  switch (update.action) {
    case 'assign-uuid':
      if (next.tableUuid !== undefined && next.tableUuid !== update.uuid) {
        throw updateInvalid(draft, `its uuid is ${next.tableUuid} and cannot be changed`)
      }
      next.tableUuid = update.uuid
      return
    case 'upgrade-format-version':
      return upgrade(draft, update.formatVersion)
    case 'set-location':
      next.location = update.location
      return
    case 'set-properties':
      next.properties = { ...next.properties, ...update.updates }
      return
    case 'remove-properties':
      next.properties = Object.fromEntries(
        Object.entries(next.properties).filter(([key]) => !update.removals.includes(key)),
      )
      return
    case 'set-statistics':
      next.statistics = [...withoutSnapshot(next.statistics, update.statistics.snapshotId), update.statistics]
      return
    case 'remove-statistics':
      next.statistics = withoutSnapshot(next.statistics, update.snapshotId)
      return
    case 'set-partition-statistics': {
      const file = update.partitionStatistics
      next.partitionStatistics = [...withoutSnapshot(next.partitionStatistics, file.snapshotId), file]
      return
    }
    case 'remove-partition-statistics':
      next.partitionStatistics = withoutSnapshot(next.partitionStatistics, update.snapshotId)
  }
}

function withoutSnapshot<T extends { readonly snapshotId: bigint }>(files: readonly T[], snapshotId: bigint): T[] {
  return files.filter((file) => file.snapshotId !== snapshotId)
}

/** v1 to v2 to v3: old snapshots keep sequence number 0 and no row ids; new ones get both. */
function upgrade(draft: Draft, version: number): void {
  const { next } = draft
  if (version < next.formatVersion) {
    throw updateInvalid(draft, `format version ${next.formatVersion} cannot be brought down to ${version}`)
  }
  if (version !== 1 && version !== 2 && version !== 3) {
    throw new IcebergError('metadata_unsupported', `Format version ${version} is not supported by this release`)
  }
  if (version > 1 && next.snapshots.some((s) => s.manifestList === undefined)) {
    throw updateInvalid(draft, 'a snapshot lists its manifests in the metadata itself; only version 1 can do that')
  }
  next.formatVersion = version
  next.tableUuid ??= crypto.randomUUID()
}
