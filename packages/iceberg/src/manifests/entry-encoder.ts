import type { AvroWriter } from '../avro/avro-writer.ts'
import { LazyMap } from '../avro/lazy-map.ts'
import type { FormatVersion } from '../metadata/table-metadata.ts'
import type { ContentFile } from './content-file.ts'
import { writePartitionValue } from './partition-values.ts'
import type { PartitionTypeField } from './partition-type.ts'
import type { NewManifestEntry } from './write-manifest.ts'

const statusCodes = { existing: 0, added: 1, deleted: 2 } as const
const contentCodes = { data: 0, 'position-deletes': 1, 'equality-deletes': 2 } as const
/** v1 requires a block size; nobody reads it. */
const blockSize = 67_108_864

/**
 * Encodes entries with the fields of `manifestFields`, in their order. Added and deleted ones name their snapshot, though
 * they could inherit it: PyIceberg 0.11 reads those that inherit it wrong.
 */
export function entryWriter(
  version: FormatVersion,
  partition: readonly PartitionTypeField[],
  snapshotId: bigint,
): (writer: AvroWriter, entry: NewManifestEntry) => void {
  return (writer, entry) => {
    writer.number(statusCodes[entry.status])
    writer.optional(entry.status === 'existing' ? entry.snapshotId : snapshotId, (v) => writer.bigint(v))
    if (version > 1) {
      const fileSequenceNumber = entry.status === 'added' ? undefined : entry.fileSequenceNumber
      writer.optional(entry.sequenceNumber, (v) => writer.bigint(v))
      writer.optional(fileSequenceNumber, (v) => writer.bigint(v))
    }
    writeFile(writer, version, partition, entry)
  }
}

function writeFile(
  writer: AvroWriter,
  version: FormatVersion,
  partition: readonly PartitionTypeField[],
  { status, file }: NewManifestEntry,
): void {
  const number = (value: number): void => writer.number(value)
  if (version > 1) writer.number(contentCodes[file.content])
  writer.string(file.filePath)
  writer.string(file.fileFormat.toUpperCase())
  for (const [index, { type }] of partition.entries()) {
    const value = file.partition[index] ?? null
    // A field of unknown type is a plain null, which has no bytes.
    if (type.type !== 'unknown' || value !== null) writer.optional(value, (v) => writePartitionValue(writer, type, v))
  }
  writer.number(file.recordCount)
  writer.number(file.fileSizeInBytes)
  if (version === 1) writer.number(blockSize)
  writeStatistics(writer, file)
  writer.optional(file.keyMetadata, (v) => writer.byteString(v))
  writer.optional(file.splitOffsets, (v) => writer.list(v, number))
  if (version > 1) writer.optional(file.equalityIds, (v) => writer.list(v, number))
  writer.optional(file.sortOrderId, number)
  // An added file takes its row ids from the manifest; one that moves keeps those it has.
  if (version >= 3) {
    const firstRowId = status === 'added' || file.content !== 'data' ? undefined : file.firstRowId
    writer.optional(firstRowId, (v) => writer.bigint(v))
  }
  if (version > 1) writer.optional(file.referencedDataFile, (v) => writer.string(v))
  if (version >= 3) {
    writer.optional(file.contentOffset, number)
    writer.optional(file.contentSizeInBytes, number)
  }
}

function writeStatistics(writer: AvroWriter, file: ContentFile): void {
  const number = (value: number): void => writer.number(value)
  const bytes = (value: Uint8Array): void => writer.byteString(value)
  writeMap(writer, file.columnSizes, number)
  writeMap(writer, file.valueCounts, number)
  writeMap(writer, file.nullValueCounts, number)
  writeMap(writer, file.nanValueCounts, number)
  writeMap(writer, file.lowerBounds, bytes)
  writeMap(writer, file.upperBounds, bytes)
}

function writeMap<V>(
  writer: AvroWriter,
  map: ReadonlyMap<number, V> | undefined,
  writeValue: (value: V) => void,
): void {
  if (map === undefined) {
    writer.number(0)
    return
  }
  writer.number(1)
  // What comes from another manifest goes over as it is.
  const lazy: unknown = map
  if (lazy instanceof LazyMap && lazy.canonical) {
    writer.raw(lazy.encoded)
    return
  }
  writer.list([...map], ([key, value]) => {
    writer.number(key)
    writeValue(value)
  })
}
