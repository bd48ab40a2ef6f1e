import type { Value } from '../values/value.ts'

export type FileContent = 'data' | 'position-deletes' | 'equality-deletes'

/** Lower case, as the format's text has them: parquet, orc, avro, puffin. Others are kept as they are. */
export type FileFormat = 'parquet' | 'orc' | 'avro' | 'puffin' | (string & {})

/** The partition of a file: a value for each field of its spec, in the order of the spec. */
export type PartitionValues = readonly (Value | null)[]

/** A data file, a delete file, or a deletion vector inside a Puffin file. */
export interface ContentFile {
  readonly content: FileContent
  /** Exactly as it is written in the manifest: it is compared as it is, never normalised. */
  readonly filePath: string
  readonly fileFormat: FileFormat
  readonly specId: number
  readonly partition: PartitionValues
  /** Rows; of a deletion vector: the rows it deletes. */
  readonly recordCount: number
  /** Of the whole file, also where this is one vector of several in it. */
  readonly fileSizeInBytes: number
  readonly columnSizes?: ReadonlyMap<number, number> | undefined
  readonly valueCounts?: ReadonlyMap<number, number> | undefined
  readonly nullValueCounts?: ReadonlyMap<number, number> | undefined
  readonly nanValueCounts?: ReadonlyMap<number, number> | undefined
  /** Binary single values by column id; see `valueFromBytes`. */
  readonly lowerBounds?: ReadonlyMap<number, Uint8Array> | undefined
  readonly upperBounds?: ReadonlyMap<number, Uint8Array> | undefined
  readonly splitOffsets?: readonly number[] | undefined
  readonly equalityIds?: readonly number[] | undefined
  readonly sortOrderId?: number | undefined
  /** v3, data files: the row id of the first row. */
  readonly firstRowId?: bigint | undefined
  /** The one data file that a delete file applies to. */
  readonly referencedDataFile?: string | undefined
  /** Where a deletion vector is in its file. */
  readonly contentOffset?: number | undefined
  readonly contentSizeInBytes?: number | undefined
  readonly keyMetadata?: Uint8Array | undefined
}

export type EntryStatus = 'existing' | 'added' | 'deleted'

/** A file in a manifest, with what it inherits from the manifest filled in. */
export interface ManifestEntry {
  readonly status: EntryStatus
  /** The snapshot that added the file, or deleted it if the status is deleted. */
  readonly snapshotId: bigint
  /** The data sequence number, by which deletes apply; 0 for files of v1. */
  readonly sequenceNumber: bigint
  /** When the file itself was added; unknown of entries that old writers carried over. */
  readonly fileSequenceNumber: bigint | undefined
  readonly file: ContentFile
}

/**
 * What names one file in sets: the path, and for a deletion vector also its place, since several vectors share one
 * Puffin file.
 */
export function fileKey(file: Pick<ContentFile, 'filePath' | 'contentOffset'>): string {
  return file.contentOffset === undefined ? file.filePath : `${file.filePath}#${file.contentOffset}`
}
