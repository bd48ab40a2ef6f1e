import type { JsonObject } from '../json/json.ts'

export type SnapshotOperation = 'append' | 'replace' | 'overwrite' | 'delete'

export interface Snapshot {
  readonly snapshotId: bigint
  readonly parentSnapshotId?: bigint
  /** 0 in v1. */
  readonly sequenceNumber: bigint
  readonly timestampMs: number
  /** Location of the manifest list; absent only in old v1 snapshots, which have `manifests`. */
  readonly manifestList?: string
  /** v1 only: locations of the manifests themselves. */
  readonly manifests?: readonly string[]
  /** Holds `operation` and free-form counts. Absent in some v1 snapshots. */
  readonly summary?: Readonly<Record<string, string>>
  readonly schemaId?: number
  /** v3: the first row id given to rows of this snapshot. */
  readonly firstRowId?: bigint
  /** v3: how many row ids this snapshot took from the table. */
  readonly addedRows?: bigint
  readonly unknownKeys?: JsonObject
}

/** A branch or tag. */
export interface SnapshotRef {
  readonly snapshotId: bigint
  readonly type: 'branch' | 'tag'
  /** Branches only. */
  readonly minSnapshotsToKeep?: number
  /** Branches only. */
  readonly maxSnapshotAgeMs?: bigint
  /** Never applies to main. */
  readonly maxRefAgeMs?: bigint
  readonly unknownKeys?: JsonObject
}
