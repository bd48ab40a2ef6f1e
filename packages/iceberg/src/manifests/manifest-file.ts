/** A manifest as the manifest list of a snapshot describes it. */
export interface ManifestFile {
  readonly manifestPath: string
  readonly manifestLength: number
  readonly partitionSpecId: number
  readonly content: 'data' | 'deletes'
  /** When the manifest was added; 0 in v1. Undefined of a new manifest: it gets the number of its commit. */
  readonly sequenceNumber: bigint | undefined
  /** The lowest data sequence number of its live files; undefined: that of the commit. */
  readonly minSequenceNumber: bigint | undefined
  readonly addedSnapshotId: bigint
  /** The counts are unknown of some manifests of v1. */
  readonly addedFilesCount?: number | undefined
  readonly existingFilesCount?: number | undefined
  readonly deletedFilesCount?: number | undefined
  readonly addedRowsCount?: number | undefined
  readonly existingRowsCount?: number | undefined
  readonly deletedRowsCount?: number | undefined
  /** One for each field of the spec, in its order; empty for an unpartitioned spec; undefined when not known. */
  readonly partitions?: readonly PartitionSummary[] | undefined
  /** v3, data manifests: the row id given to the first file that has none. */
  readonly firstRowId?: bigint | undefined
  readonly keyMetadata?: Uint8Array | undefined
}

/** What the files of a manifest have in one partition field. */
export interface PartitionSummary {
  readonly containsNull: boolean
  readonly containsNan?: boolean | undefined
  /** Binary single values, without null and NaN. */
  readonly lowerBound?: Uint8Array | undefined
  readonly upperBound?: Uint8Array | undefined
}
