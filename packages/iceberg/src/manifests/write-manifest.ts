import type { AvroCodec } from '../avro/codec.ts'
import { createAvroFile } from '../avro/container-writer.ts'
import { avroSchemaText } from '../avro/type-to-avro.ts'
import { stringifyJson } from '../json/json.ts'
import type { PartitionSpec } from '../schema/partition-spec.ts'
import { partitionFieldsToJson } from '../schema/partition-spec-json.ts'
import type { Schema } from '../schema/schema.ts'
import { schemaToJson } from '../schema/schema-json.ts'
import type { FormatVersion } from '../metadata/table-metadata.ts'
import { checkEntry } from './check-entry.ts'
import type { ContentFile } from './content-file.ts'
import { entryWriter } from './entry-encoder.ts'
import type { ManifestFile } from './manifest-file.ts'
import { manifestFields } from './manifest-schema.ts'
import { partitionSummaries } from './partition-summary.ts'
import { partitionType, type PartitionTypeField } from './partition-type.ts'

export interface ManifestWriterOptions {
  readonly formatVersion: FormatVersion
  readonly content: 'data' | 'deletes'
  readonly schema: Schema
  readonly partitionSpec: PartitionSpec
  /** Types of the partition values, where the schema no longer has their columns. Default: from the schema. */
  readonly partition?: readonly PartitionTypeField[]
  /** The snapshot being made: added and deleted entries belong to it. */
  readonly snapshotId: bigint
  /** Default: deflate, as `write.manifest.compression-codec` gzip. */
  readonly codec?: AvroCodec
  /** v3, data manifests that are rewritten from ones with row ids. Default: given by the manifest list. */
  readonly firstRowId?: bigint
}

/** An entry to be written. What is left out of an added one is inherited from the commit. */
export type NewManifestEntry =
  | { readonly status: 'added'; readonly sequenceNumber?: bigint | undefined; readonly file: ContentFile }
  | {
      readonly status: 'existing' | 'deleted'
      /** Of an existing file: the snapshot that added it. A deleted one gets the snapshot being made. */
      readonly snapshotId: bigint
      readonly sequenceNumber: bigint
      readonly fileSequenceNumber: bigint | undefined
      readonly file: ContentFile
    }

export interface ManifestWriter {
  add(entry: NewManifestEntry): void
  /** Entries so far. */
  readonly count: number
  /** About how many bytes the manifest has so far. */
  readonly length: number
  /** The file, and its line for the manifest list: with the location it is stored at. */
  finish(manifestPath: string): { content: Buffer; manifest: ManifestFile }
}

/** Writes a manifest as Iceberg's own writers do. */
export function createManifestWriter(options: ManifestWriterOptions): ManifestWriter {
  const { formatVersion, snapshotId } = options
  const partition = options.partition ?? partitionType(options.partitionSpec, options.schema)
  const fields = manifestFields(formatVersion, partition)
  const file = createAvroFile(
    avroSchemaText('manifest_entry', fields),
    metadataOf(options, fields),
    options.codec ?? 'deflate',
  )
  const write = entryWriter(formatVersion, partition, snapshotId)
  const summaries = partitionSummaries(partition)
  const files = { added: 0, existing: 0, deleted: 0 }
  const rows = { added: 0, existing: 0, deleted: 0 }
  let minSequenceNumber: bigint | undefined
  return {
    add(entry) {
      checkEntry(options, entry)
      files[entry.status] += 1
      rows[entry.status] += entry.file.recordCount
      summaries.add(entry.file.partition)
      const { sequenceNumber } = entry
      if (entry.status !== 'deleted' && sequenceNumber !== undefined) {
        if (minSequenceNumber === undefined || sequenceNumber < minSequenceNumber) minSequenceNumber = sequenceNumber
      }
      file.append((writer) => write(writer, entry))
    },
    get count() {
      return files.added + files.existing + files.deleted
    },
    get length() {
      return file.length
    },
    finish(manifestPath) {
      const content = file.finish()
      const manifest: ManifestFile = {
        manifestPath,
        manifestLength: content.length,
        partitionSpecId: options.partitionSpec.specId,
        content: options.content,
        sequenceNumber: undefined,
        minSequenceNumber,
        addedSnapshotId: snapshotId,
        addedFilesCount: files.added,
        existingFilesCount: files.existing,
        deletedFilesCount: files.deleted,
        addedRowsCount: rows.added,
        existingRowsCount: rows.existing,
        deletedRowsCount: rows.deleted,
        partitions: summaries.finish(),
        firstRowId: options.firstRowId,
      }
      return { content, manifest }
    },
  }
}

function metadataOf(options: ManifestWriterOptions, fields: Schema['fields']): Record<string, string> {
  const { formatVersion, schema, partitionSpec } = options
  return {
    schema: stringifyJson(schemaToJson(schema)),
    'schema-id': String(schema.schemaId),
    'partition-spec': stringifyJson(partitionFieldsToJson(partitionSpec)),
    'partition-spec-id': String(partitionSpec.specId),
    'format-version': String(formatVersion),
    ...(formatVersion > 1 ? { content: options.content } : {}),
    'iceberg.schema': stringifyJson(schemaToJson({ schemaId: 0, identifierFieldIds: [], fields })),
  }
}
