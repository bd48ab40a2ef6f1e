import type { AvroCodec } from '../avro/codec.ts'
import type { LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { PartitionTypeField } from '../manifests/partition-type.ts'
import { createManifestWriter, type NewManifestEntry } from '../manifests/write-manifest.ts'
import { propertyOf, tableProperties } from '../properties.ts'
import { partitionSpecOf, schemaOf, type TableMetadata } from '../metadata/table-metadata.ts'

export function targetManifestBytes(metadata: TableMetadata): number {
  return propertyOf(metadata, tableProperties.manifestTargetBytes)
}

/** A manifest with its bytes. */
export interface EncodedManifest {
  readonly manifest: ManifestFile
  readonly content: Buffer
  readonly entries: readonly NewManifestEntry[]
}

export interface EncodeOptions {
  readonly table: LoadedTable
  /** The types of the partition values, of the spec that all entries have. */
  readonly partition: readonly PartitionTypeField[]
  /** Of the snapshot being made. */
  readonly snapshotId: bigint
  /** A manifest that has so many bytes is ended, and another begun. */
  readonly targetBytes: number
  readonly newPath: () => string
}

/** Encodes entries of one spec and kind as manifests, in their order, one after the other. Nothing is stored. */
export function* encodeManifests(
  entries: readonly NewManifestEntry[],
  options: EncodeOptions,
): Generator<EncodedManifest> {
  const { metadata } = options.table
  const first = entries[0]?.file
  if (first === undefined) return
  const firstRowId = metadata.formatVersion < 3 ? undefined : leastRowId(entries)
  const open = () =>
    createManifestWriter({
      formatVersion: metadata.formatVersion,
      content: first.content === 'data' ? 'data' : 'deletes',
      schema: schemaOf(metadata),
      partitionSpec: partitionSpecOf(metadata, first.specId),
      partition: options.partition,
      snapshotId: options.snapshotId,
      codec: manifestCodec(metadata),
      ...(firstRowId !== undefined && { firstRowId }),
    })
  let writer = open()
  let since = 0
  const finish = (until: number): EncodedManifest => ({
    ...writer.finish(options.newPath()),
    entries: entries.slice(since, until),
  })
  for (const [index, entry] of entries.entries()) {
    if (writer.count > 0 && writer.length >= options.targetBytes) {
      yield finish(index)
      writer = open()
      since = index
    }
    writer.add(entry)
  }
  yield finish(entries.length)
}

/**
 * The lowest row id of the files, if they all have one: then the manifest needs no fresh ids, which would only use
 * numbers up. Undefined when a file is still to be given its ids.
 */
function leastRowId(entries: readonly NewManifestEntry[]): bigint | undefined {
  let least: bigint | undefined
  for (const { status, file } of entries) {
    if (status === 'deleted') continue
    if (status === 'added' || file.firstRowId === undefined) return undefined
    if (least === undefined || file.firstRowId < least) least = file.firstRowId
  }
  return least
}

export function manifestCodec(metadata: TableMetadata): AvroCodec {
  const codec = propertyOf(metadata, tableProperties.manifestCodec)
  if (codec === 'gzip') return 'deflate'
  if (codec === 'uncompressed' || codec === 'none') return 'null'
  throw new IcebergError(
    'metadata_unsupported',
    `write.manifest.compression-codec is ${codec}, which cannot be written: use gzip or uncompressed`,
  )
}
