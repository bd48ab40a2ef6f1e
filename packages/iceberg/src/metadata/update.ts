import type { PartitionSpec } from '../schema/partition-spec.ts'
import type { Schema } from '../schema/schema.ts'
import type { Snapshot, SnapshotRef } from './snapshot.ts'
import type { SortOrder } from '../schema/sort-order.ts'
import type { PartitionStatisticsFile, StatisticsFile } from './statistics.ts'
import type { FormatVersion } from './table-metadata.ts'

/**
 * One change to table metadata, named as the REST catalog names it. Schemas, specs and orders are given with an id that
 * is only a proposal: the table gives the id, and -1 in the set-… updates means the one added last.
 */
export type MetadataUpdate =
  | { readonly action: 'assign-uuid'; readonly uuid: string }
  | { readonly action: 'upgrade-format-version'; readonly formatVersion: FormatVersion }
  | { readonly action: 'add-schema'; readonly schema: Schema }
  | { readonly action: 'set-current-schema'; readonly schemaId: number }
  | { readonly action: 'add-spec'; readonly spec: PartitionSpec }
  | { readonly action: 'set-default-spec'; readonly specId: number }
  | { readonly action: 'add-sort-order'; readonly sortOrder: SortOrder }
  | { readonly action: 'set-default-sort-order'; readonly sortOrderId: number }
  | { readonly action: 'add-snapshot'; readonly snapshot: Snapshot }
  | { readonly action: 'set-snapshot-ref'; readonly refName: string; readonly ref: SnapshotRef }
  | { readonly action: 'remove-snapshots'; readonly snapshotIds: readonly bigint[] }
  | { readonly action: 'remove-snapshot-ref'; readonly refName: string }
  | { readonly action: 'set-location'; readonly location: string }
  | { readonly action: 'set-properties'; readonly updates: Readonly<Record<string, string>> }
  | { readonly action: 'remove-properties'; readonly removals: readonly string[] }
  | { readonly action: 'set-statistics'; readonly statistics: StatisticsFile }
  | { readonly action: 'remove-statistics'; readonly snapshotId: bigint }
  | { readonly action: 'set-partition-statistics'; readonly partitionStatistics: PartitionStatisticsFile }
  | { readonly action: 'remove-partition-statistics'; readonly snapshotId: bigint }
  | { readonly action: 'remove-partition-specs'; readonly specIds: readonly number[] }
  | { readonly action: 'remove-schemas'; readonly schemaIds: readonly number[] }

/** What must hold of the table for updates to be applied, named as the REST catalog names it. */
export type MetadataRequirement =
  | { readonly type: 'assert-create' }
  | { readonly type: 'assert-table-uuid'; readonly uuid: string }
  /** `snapshotId` null: the ref must not exist. */
  | { readonly type: 'assert-ref-snapshot-id'; readonly ref: string; readonly snapshotId: bigint | null }
  | { readonly type: 'assert-last-assigned-field-id'; readonly lastAssignedFieldId: number }
  | { readonly type: 'assert-current-schema-id'; readonly currentSchemaId: number }
  | { readonly type: 'assert-last-assigned-partition-id'; readonly lastAssignedPartitionId: number }
  | { readonly type: 'assert-default-spec-id'; readonly defaultSpecId: number }
  | { readonly type: 'assert-default-sort-order-id'; readonly defaultSortOrderId: number }
