import type { AvroWriter } from '../avro/avro-writer.ts'
import type { AvroCodec } from '../avro/codec.ts'
import { createAvroFile } from '../avro/container-writer.ts'
import { avroSchemaText } from '../avro/type-to-avro.ts'
import { IcebergError } from '../errors.ts'
import { stringifyJson } from '../json/json.ts'
import { schemaToJson } from '../schema/schema-json.ts'
import type { FormatVersion } from '../metadata/table-metadata.ts'
import type { ManifestFile, PartitionSummary } from './manifest-file.ts'
import { manifestListFields } from './manifest-schema.ts'

export interface ManifestListOptions {
  readonly formatVersion: FormatVersion
  readonly snapshotId: bigint
  readonly parentSnapshotId: bigint | undefined
  /** Of the commit: what new manifests get. 0 in v1. */
  readonly sequenceNumber: bigint
  /** v3: the table's next row id. */
  readonly firstRowId?: bigint
  readonly codec?: AvroCodec
}

export interface WrittenManifestList {
  readonly content: Buffer
  /** The manifests as the list has them, with what they were given. */
  readonly manifests: ManifestFile[]
  /** v3: how many row ids were given to manifests; `added-rows` of the snapshot. */
  readonly addedRows: bigint
}

/** Writes the manifest list of a snapshot, giving sequence numbers and row ids to manifests that have none. */
export function writeManifestList(
  manifests: readonly ManifestFile[],
  options: ManifestListOptions,
): WrittenManifestList {
  const { formatVersion } = options
  const fields = manifestListFields(formatVersion)
  const metadata = {
    'snapshot-id': String(options.snapshotId),
    'parent-snapshot-id': String(options.parentSnapshotId ?? null),
    ...(formatVersion > 1 ? { 'sequence-number': String(options.sequenceNumber) } : {}),
    ...(formatVersion >= 3 ? { 'first-row-id': String(firstRowIdOf(options)) } : {}),
    'format-version': String(formatVersion),
    'iceberg.schema': stringifyJson(schemaToJson({ schemaId: 0, identifierFieldIds: [], fields })),
  }
  const file = createAvroFile(avroSchemaText('manifest_file', fields), metadata, options.codec ?? 'deflate')
  const first = formatVersion >= 3 ? firstRowIdOf(options) : 0n
  let nextRowId = first
  const written = manifests.map((given) => {
    let manifest = withSequenceNumbers(given, options)
    if (formatVersion >= 3 && manifest.content === 'data' && manifest.firstRowId === undefined) {
      manifest = { ...manifest, firstRowId: nextRowId }
      // Existing rows too: files from before v3 get their first row ids here.
      nextRowId += BigInt(countOf(manifest, 'existingRowsCount') + countOf(manifest, 'addedRowsCount'))
    }
    file.append((writer) => writeManifestFile(writer, formatVersion, manifest))
    return manifest
  })
  return { content: file.finish(), manifests: written, addedRows: nextRowId - first }
}

function firstRowIdOf(options: ManifestListOptions): bigint {
  if (options.firstRowId !== undefined) return options.firstRowId
  throw new IcebergError(
    'manifest_invalid',
    'A manifest list of format version 3 needs the first row id of its snapshot',
  )
}

function withSequenceNumbers(manifest: ManifestFile, options: ManifestListOptions): ManifestFile {
  const { sequenceNumber, minSequenceNumber } = manifest
  if (options.formatVersion === 1) {
    if (manifest.content === 'deletes') throw invalid(manifest, 'format version 1 has no delete manifests')
    return { ...manifest, sequenceNumber: 0n, minSequenceNumber: 0n }
  }
  const isNew = sequenceNumber === undefined || minSequenceNumber === undefined
  if (isNew && manifest.addedSnapshotId !== options.snapshotId) {
    throw invalid(
      manifest,
      `it has no sequence number, and is of snapshot ${manifest.addedSnapshotId}, not of this one`,
    )
  }
  return {
    ...manifest,
    sequenceNumber: sequenceNumber ?? options.sequenceNumber,
    minSequenceNumber: minSequenceNumber ?? options.sequenceNumber,
  }
}

type CountName = `${'added' | 'existing' | 'deleted'}${'Files' | 'Rows'}Count`

function countOf(manifest: ManifestFile, name: CountName): number {
  const count = manifest[name]
  if (count === undefined) throw invalid(manifest, `its ${name} is not known; the manifest must be rewritten first`)
  return count
}

function writeManifestFile(writer: AvroWriter, version: FormatVersion, manifest: ManifestFile): void {
  writer.string(manifest.manifestPath)
  writer.number(manifest.manifestLength)
  writer.number(manifest.partitionSpecId)
  if (version > 1) {
    writer.number(manifest.content === 'deletes' ? 1 : 0)
    writer.bigint(manifest.sequenceNumber ?? 0n)
    writer.bigint(manifest.minSequenceNumber ?? 0n)
  }
  writer.bigint(manifest.addedSnapshotId)
  const count = (name: CountName): void => {
    if (version > 1) writer.number(countOf(manifest, name))
    else writer.optional(manifest[name], (v) => writer.number(v))
  }
  count('addedFilesCount')
  count('existingFilesCount')
  count('deletedFilesCount')
  if (version === 1) writeSummaries(writer, manifest.partitions)
  count('addedRowsCount')
  count('existingRowsCount')
  count('deletedRowsCount')
  if (version > 1) writeSummaries(writer, manifest.partitions)
  writer.optional(manifest.keyMetadata, (v) => writer.byteString(v))
  if (version >= 3) {
    const firstRowId = manifest.content === 'data' ? manifest.firstRowId : undefined
    writer.optional(firstRowId, (v) => writer.bigint(v))
  }
}

function writeSummaries(writer: AvroWriter, summaries: readonly PartitionSummary[] | undefined): void {
  writer.optional(summaries, (list) =>
    writer.list(list, (summary) => {
      writer.boolean(summary.containsNull)
      writer.optional(summary.containsNan, (v) => writer.boolean(v))
      writer.optional(summary.lowerBound, (v) => writer.byteString(v))
      writer.optional(summary.upperBound, (v) => writer.byteString(v))
    }),
  )
}

function invalid(manifest: ManifestFile, message: string): IcebergError {
  return new IcebergError('manifest_invalid', `${manifest.manifestPath} cannot be put in a manifest list: ${message}`)
}
