import type { JsonObject } from '../json/json.ts'

/** A Puffin file with statistics of one snapshot. */
export interface StatisticsFile {
  readonly snapshotId: bigint
  readonly statisticsPath: string
  readonly fileSizeInBytes: bigint
  readonly fileFooterSizeInBytes: bigint
  readonly blobMetadata: readonly StatisticsBlob[]
  readonly unknownKeys?: JsonObject
}

export interface StatisticsBlob {
  readonly type: string
  readonly snapshotId: bigint
  readonly sequenceNumber: bigint
  readonly fields: readonly number[]
  readonly properties?: Readonly<Record<string, string>>
  readonly unknownKeys?: JsonObject
}

/** A file with statistics of each partition of one snapshot. */
export interface PartitionStatisticsFile {
  readonly snapshotId: bigint
  readonly statisticsPath: string
  readonly fileSizeInBytes: bigint
  readonly unknownKeys?: JsonObject
}
