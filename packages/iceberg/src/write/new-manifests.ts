import type { AvroCodec } from '../avro/codec.ts'
import type { LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ManifestFile } from '../manifests/manifest-file.ts'
import type { PartitionTypeField } from '../manifests/partition-type.ts'
import { createManifestWriter, type NewManifestEntry } from '../manifests/write-manifest.ts'
import { partitionSpecOf, schemaOf, type TableMetadata } from '../metadata/table-metadata.ts'
import { metadataLocationOf } from './data-location.ts'
import type { SummaryCounts } from './snapshot-summary.ts'

/** A snapshot while it is being made. */
export interface Draft {
  readonly table: LoadedTable
  readonly snapshotId: bigint
  readonly uuid: string
  /** Made for it so far. */
  readonly files: Set<string>
  readonly counts: SummaryCounts
  /** The entries of the manifests that were written for it, by their path. */
  readonly written: Map<string, readonly NewManifestEntry[]>
  /** Of the values in the partitions of a spec. */
  readonly typesOf: (specId: number) => Promise<readonly PartitionTypeField[]>
  manifests: number
}

export function targetManifestBytes(metadata: TableMetadata): number {
  return Number(metadata.properties['commit.manifest.target-size-bytes'] ?? 8 * 1024 * 1024)
}

/** Writes entries of one spec and kind as manifests of about `target` bytes. */
export async function writeManifests(
  draft: Draft,
  entries: readonly NewManifestEntry[],
  target = targetManifestBytes(draft.table.metadata),
): Promise<ManifestFile[]> {
  const { metadata, storage } = draft.table
  const first = entries[0]?.file
  if (first === undefined) return []
  const partition = await draft.typesOf(first.specId)
  const firstRowId = metadata.formatVersion < 3 ? undefined : leastRowId(entries)
  const open = () =>
    createManifestWriter({
      formatVersion: metadata.formatVersion,
      content: first.content === 'data' ? 'data' : 'deletes',
      schema: schemaOf(metadata),
      partitionSpec: partitionSpecOf(metadata, first.specId),
      partition,
      snapshotId: draft.snapshotId,
      codec: manifestCodec(metadata),
      ...(firstRowId !== undefined && { firstRowId }),
    })
  const manifests: ManifestFile[] = []
  let writer = open()
  let since = 0
  const finish = async (until: number): Promise<void> => {
    const path = metadataLocationOf(metadata, `${draft.uuid}-m${draft.manifests}.avro`)
    draft.manifests += 1
    draft.files.add(path)
    const { content, manifest } = writer.finish(path)
    await storage.write(path, content)
    draft.written.set(path, entries.slice(since, until))
    manifests.push(manifest)
  }
  for (const [index, entry] of entries.entries()) {
    if (writer.count > 0 && writer.length >= target) {
      await finish(index)
      writer = open()
      since = index
    }
    writer.add(entry)
  }
  await finish(entries.length)
  return manifests
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

function manifestCodec(metadata: TableMetadata): AvroCodec {
  const codec = (metadata.properties['write.manifest.compression-codec'] ?? 'gzip').toLowerCase()
  if (codec === 'gzip') return 'deflate'
  if (codec === 'uncompressed' || codec === 'none') return 'null'
  throw new IcebergError(
    'metadata_unsupported',
    `write.manifest.compression-codec is ${codec}, which cannot be written: use gzip or uncompressed`,
  )
}
