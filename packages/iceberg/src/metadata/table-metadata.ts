import { IcebergError } from '../errors.ts'
import type { JsonObject } from '../json/json.ts'
import type { PartitionSpec } from '../schema/partition-spec.ts'
import type { Schema } from '../schema/schema.ts'
import type { Snapshot, SnapshotRef } from './snapshot.ts'
import type { SortOrder } from '../schema/sort-order.ts'
import type { PartitionStatisticsFile, StatisticsFile } from './statistics.ts'

export type FormatVersion = 1 | 2 | 3

export const mainBranch = 'main'

/** A table as one metadata.json describes it. Plain data: changes make a new one, see `applyUpdates`. */
export interface TableMetadata {
  readonly formatVersion: FormatVersion
  /** Absent only in old v1 tables. */
  readonly tableUuid?: string
  readonly location: string
  /** 0 in v1. */
  readonly lastSequenceNumber: bigint
  readonly lastUpdatedMs: number
  readonly lastColumnId: number
  readonly currentSchemaId: number
  readonly schemas: readonly Schema[]
  readonly defaultSpecId: number
  readonly partitionSpecs: readonly PartitionSpec[]
  readonly lastPartitionId: number
  readonly defaultSortOrderId: number
  readonly sortOrders: readonly SortOrder[]
  readonly properties: Readonly<Record<string, string>>
  /** The head of main; undefined when the table is empty. */
  readonly currentSnapshotId?: bigint
  readonly snapshots: readonly Snapshot[]
  readonly snapshotLog: readonly SnapshotLogEntry[]
  readonly metadataLog: readonly MetadataLogEntry[]
  readonly refs: ReadonlyMap<string, SnapshotRef>
  readonly statistics: readonly StatisticsFile[]
  readonly partitionStatistics: readonly PartitionStatisticsFile[]
  /** v3: the next row id to give; 0 before. */
  readonly nextRowId: bigint
  readonly unknownKeys?: JsonObject
}

/** When main came to be at a snapshot. */
export interface SnapshotLogEntry {
  readonly timestampMs: number
  readonly snapshotId: bigint
  readonly unknownKeys?: JsonObject
}

/** An earlier metadata file of the table, and when it was written. */
export interface MetadataLogEntry {
  readonly timestampMs: number
  readonly metadataFile: string
  readonly unknownKeys?: JsonObject
}

export function findSnapshot(metadata: TableMetadata, snapshotId: bigint): Snapshot | undefined {
  return metadata.snapshots.find((snapshot) => snapshot.snapshotId === snapshotId)
}

/** The head of main, or of the named branch or tag; undefined when there is none. */
export function currentSnapshot(metadata: TableMetadata, refName: string = mainBranch): Snapshot | undefined {
  const id = refName === mainBranch ? metadata.currentSnapshotId : metadata.refs.get(refName)?.snapshotId
  return id === undefined ? undefined : findSnapshot(metadata, id)
}

/** The schema with this id, by default the current one. */
export function schemaOf(metadata: TableMetadata, schemaId: number = metadata.currentSchemaId): Schema {
  const schema = metadata.schemas.find((s) => s.schemaId === schemaId)
  if (schema === undefined) throw missing('schema', schemaId, metadata)
  return schema
}

/** The partition spec with this id, by default the one new data is written with. */
export function partitionSpecOf(metadata: TableMetadata, specId: number = metadata.defaultSpecId): PartitionSpec {
  const spec = metadata.partitionSpecs.find((s) => s.specId === specId)
  if (spec === undefined) throw missing('partition spec', specId, metadata)
  return spec
}

/** The sort order with this id, by default the table's. */
export function sortOrderOf(metadata: TableMetadata, orderId: number = metadata.defaultSortOrderId): SortOrder {
  const order = metadata.sortOrders.find((s) => s.orderId === orderId)
  if (order !== undefined) return order
  // The unsorted order may be left out of the list.
  if (orderId === 0) return { orderId: 0, fields: [] }
  throw missing('sort order', orderId, metadata)
}

function missing(what: string, id: number, metadata: TableMetadata): IcebergError {
  return new IcebergError('metadata_invalid', `The table at ${metadata.location} has no ${what} ${id}`)
}
