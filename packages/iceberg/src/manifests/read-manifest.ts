import { AvroReader } from '../avro/avro-reader.ts'
import { recordFields } from '../avro/avro-schema.ts'
import { type AvroBlock, type AvroHeader, openAvro, streamAvro } from '../avro/container.ts'
import type { Read } from '../avro/compile.ts'
import { typeFromAvro } from '../avro/type-from-avro.ts'
import { IcebergError } from '../errors.ts'
import { parseJson } from '../json/json.ts'
import { ObjectReader } from '../json/object-reader.ts'
import type { PartitionSpec } from '../schema/partition-spec.ts'
import { partitionFieldsFromJson } from '../schema/partition-spec-json.ts'
import type { Schema } from '../schema/schema.ts'
import { schemaFromJson } from '../schema/schema-json.ts'
import type { PrimitiveType } from '../schema/type.ts'
import type { ManifestEntry } from './content-file.ts'
import { compileEntry, type DecodedEntry } from './entry-decoder.ts'
import { inheritance } from './inheritance.ts'
import type { ManifestFile } from './manifest-file.ts'
import { partitionType, type PartitionTypeField } from './partition-type.ts'

/** What a manifest inherits from: as the manifest list has it, or as far as it is known. */
export type ManifestSource = Pick<ManifestFile, 'manifestPath'> & Partial<ManifestFile>

export interface ReadManifestOptions {
  /** Also entries with the status deleted. Default: false, only live files. */
  readonly deleted?: boolean
  /** Also counts, sizes and bounds by column. They cost time, and keep the block they are from in memory. Default: true. */
  readonly statistics?: boolean
  /**
   * The partition spec of the manifest with its types, from the table's metadata (`partitionType`). Default: what the
   * manifest says itself.
   */
  readonly partition?: readonly PartitionTypeField[]
}

/** Some writers put a whole manifest into one block. */
const batchEntries = 1024

/** What a manifest says of itself. */
export interface ManifestHeader {
  readonly schema: Schema | undefined
  readonly partitionSpec: PartitionSpec | undefined
  readonly formatVersion: number
  readonly content: 'data' | 'deletes'
}

/** The entries of a manifest that is in memory. */
export function readManifest(
  file: Uint8Array,
  manifest: ManifestSource,
  options: ReadManifestOptions = {},
): ManifestEntry[] {
  const avro = openAvro(file, manifest.manifestPath)
  const decode = blockDecoder(avro, manifest, options)
  const entries: ManifestEntry[] = []
  for (const block of avro.blocks()) for (const batch of decode(block)) for (const entry of batch) entries.push(entry)
  return entries
}

/** The same, some at a time: those before need not be in memory any more. */
export function* manifestBatches(
  file: Uint8Array,
  manifest: ManifestSource,
  options: ReadManifestOptions = {},
): Generator<ManifestEntry[]> {
  const avro = openAvro(file, manifest.manifestPath)
  const decode = blockDecoder(avro, manifest, options)
  for (const block of avro.blocks()) yield* decode(block)
}

/** The entries of a manifest that arrives in pieces, a block at a time: memory does not grow with its length. */
export async function* streamManifest(
  pieces: AsyncIterable<Uint8Array>,
  manifest: ManifestSource,
  options: ReadManifestOptions = {},
): AsyncGenerator<ManifestEntry[]> {
  const avro = await streamAvro(pieces, manifest.manifestPath)
  const decode = blockDecoder(avro, manifest, options)
  for await (const block of avro.blocks()) yield* decode(block)
}

export function readManifestHeader(file: Uint8Array, manifestPath: string): ManifestHeader {
  return manifestHeader(openAvro(file, manifestPath), manifestPath)
}

/** The types that a manifest itself has for the values of its partition, by the id of their fields. */
export function manifestPartitionType(file: Uint8Array, manifestPath: string): Map<number, PrimitiveType> {
  const { schema } = openAvro(file, manifestPath)
  const dataFile = recordFields(schema).find(({ id }) => id === 2)
  const partition = recordFields(dataFile?.schema).find(({ id }) => id === 102)
  return new Map(recordFields(partition?.schema).map(({ id = -1, schema: type }) => [id, typeFromAvro(type)]))
}

/** Describes a manifest that an old v1 snapshot names itself, without a manifest list (`Snapshot.manifests`). */
export function embeddedManifest(
  file: Uint8Array,
  manifestPath: string,
  snapshot: { readonly snapshotId: bigint },
): ManifestFile {
  return {
    manifestPath,
    manifestLength: file.length,
    partitionSpecId: readManifestHeader(file, manifestPath).partitionSpec?.specId ?? 0,
    content: 'data',
    sequenceNumber: 0n,
    minSequenceNumber: 0n,
    addedSnapshotId: snapshot.snapshotId,
  }
}

function manifestHeader(avro: AvroHeader, what: string): ManifestHeader {
  const { metadata } = avro
  const schema = metadata.get('schema')
  const spec = metadata.get('partition-spec')
  const specId = Number(metadata.get('partition-spec-id') ?? 0)
  return {
    schema: schema === undefined ? undefined : schemaFromJson(parseJson(schema, `the schema of ${what}`)),
    partitionSpec: spec === undefined ? undefined : { specId, fields: specFields(spec, what) },
    formatVersion: Number(metadata.get('format-version') ?? 1),
    content: metadata.get('content') === 'deletes' ? 'deletes' : 'data',
  }
}

/** Most writers write the fields alone; some write the whole spec. */
function specFields(text: string, what: string): PartitionSpec['fields'] {
  const json = parseJson(text, `the partition spec of ${what}`)
  const spec = Array.isArray(json) ? { fields: json } : json
  return partitionFieldsFromJson(new ObjectReader(spec, `the partition spec of ${what}`), 'fields')
}

function blockDecoder(
  avro: AvroHeader,
  manifest: ManifestSource,
  options: ReadManifestOptions,
): (block: AvroBlock) => Generator<ManifestEntry[]> {
  const specId = manifest.partitionSpecId ?? Number(avro.metadata.get('partition-spec-id') ?? 0)
  const partition = options.partition ?? ownPartition(avro, manifest.manifestPath)
  const read = compileEntry(avro.schema, { partition, statistics: options.statistics ?? true })
  const inherit = inheritance(manifest, specId)
  const deleted = options.deleted ?? false
  return function* (block) {
    const reader = new AvroReader(block.data)
    for (let left = block.count; left > 0;) {
      const entries: ManifestEntry[] = []
      for (let n = Math.min(left, batchEntries); n > 0; n -= 1, left -= 1) {
        const entry = inherit(readEntry(read, reader, manifest))
        if (deleted || entry.status !== 'deleted') entries.push(entry)
      }
      if (entries.length > 0) yield entries
    }
    if (!reader.atEnd) {
      throw new IcebergError('avro_invalid', `${manifest.manifestPath} is damaged: a block is longer than its entries`)
    }
  }
}

function readEntry(read: Read<DecodedEntry>, reader: AvroReader, manifest: ManifestSource): DecodedEntry {
  try {
    return read(reader)
  } catch (error) {
    if (!(error instanceof IcebergError)) throw error
    throw new IcebergError(error.code, `${manifest.manifestPath}: ${error.message}`, { cause: error })
  }
}

function ownPartition(avro: AvroHeader, what: string): PartitionTypeField[] {
  const { schema, partitionSpec } = manifestHeader(avro, what)
  if (partitionSpec === undefined) {
    throw new IcebergError('manifest_invalid', `${what} does not say its partition spec; give it from the table`)
  }
  return partitionType(partitionSpec, schema ?? { schemaId: 0, identifierFieldIds: [], fields: [] })
}
