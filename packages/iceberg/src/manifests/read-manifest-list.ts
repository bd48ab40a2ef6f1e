import { AvroReader } from '../avro/avro-reader.ts'
import type { AvroSchema } from '../avro/avro-schema.ts'
import {
  compileBigint,
  compileBoolean,
  compileBytes,
  compileList,
  compileNumber,
  compileOptional,
  compileRequired,
  compileSkip,
  compileString,
  type Read,
} from '../avro/compile.ts'
import { openAvro } from '../avro/container.ts'
import { IcebergError } from '../errors.ts'
import type { ManifestFile, PartitionSummary } from './manifest-file.ts'

type Draft<T> = { -readonly [K in keyof T]?: T[K] | undefined }
type Step<T> = (reader: AvroReader, target: Draft<T>) => void
type Field<T> = readonly [name: string, compile: (schema: AvroSchema) => Step<T>]

function step<T, V>(compile: (s: AvroSchema) => Read<V>, assign: (target: Draft<T>, value: V | undefined) => void) {
  return (schema: AvroSchema): Step<T> => {
    const read = compileOptional(schema, compile)
    return (r, target) => assign(target, read(r))
  }
}

/** How a field of a manifest list is read, by its field id. Old files have other names for some. */
const manifestFields: ReadonlyMap<number, Field<ManifestFile>> = new Map<number, Field<ManifestFile>>([
  [500, ['manifest_path', step(compileString, (m, v) => (m.manifestPath = v))]],
  [501, ['manifest_length', step(compileNumber, (m, v) => (m.manifestLength = v))]],
  [502, ['partition_spec_id', step(compileNumber, (m, v) => (m.partitionSpecId = v))]],
  [517, ['content', step(compileNumber, (m, v) => (m.content = v === 1 ? 'deletes' : 'data'))]],
  [515, ['sequence_number', step(compileBigint, (m, v) => (m.sequenceNumber = v))]],
  [516, ['min_sequence_number', step(compileBigint, (m, v) => (m.minSequenceNumber = v))]],
  [503, ['added_snapshot_id', step(compileBigint, (m, v) => (m.addedSnapshotId = v))]],
  [504, ['added_files_count', step(compileNumber, (m, v) => (m.addedFilesCount = v))]],
  [505, ['existing_files_count', step(compileNumber, (m, v) => (m.existingFilesCount = v))]],
  [506, ['deleted_files_count', step(compileNumber, (m, v) => (m.deletedFilesCount = v))]],
  [512, ['added_rows_count', step(compileNumber, (m, v) => (m.addedRowsCount = v))]],
  [513, ['existing_rows_count', step(compileNumber, (m, v) => (m.existingRowsCount = v))]],
  [514, ['deleted_rows_count', step(compileNumber, (m, v) => (m.deletedRowsCount = v))]],
  [
    507,
    [
      'partitions',
      step(
        (s) => compileList(s, (items) => compileRequired(items, compileSummary, 'A partition summary')),
        (m, v) => (m.partitions = v),
      ),
    ],
  ],
  [519, ['key_metadata', step(compileBytes, (m, v) => (m.keyMetadata = copied(v)))]],
  [520, ['first_row_id', step(compileBigint, (m, v) => (m.firstRowId = v))]],
])

const summaryFields: ReadonlyMap<number, Field<PartitionSummary>> = new Map<number, Field<PartitionSummary>>([
  [509, ['contains_null', step(compileBoolean, (s, v) => (s.containsNull = v))]],
  [518, ['contains_nan', step(compileBoolean, (s, v) => (s.containsNan = v))]],
  [510, ['lower_bound', step(compileBytes, (s, v) => (s.lowerBound = copied(v)))]],
  [511, ['upper_bound', step(compileBytes, (s, v) => (s.upperBound = copied(v)))]],
])

function copied(bytes: Buffer | undefined): Buffer | undefined {
  return bytes === undefined ? undefined : Buffer.from(bytes)
}

function compileRecord<T>(schema: AvroSchema, fields: ReadonlyMap<number, Field<T>>): Read<Draft<T>> {
  if (schema.kind !== 'record') throw new IcebergError('avro_invalid', 'A manifest list does not hold records')
  const idsByName = new Map([...fields].map(([id, [name]]) => [name, id]))
  const steps = schema.fields.map(
    (field): Step<T> =>
      fields.get(field.id ?? idsByName.get(field.name) ?? -1)?.[1](field.schema) ?? compileSkip(field.schema),
  )
  return (r) => {
    const target: Draft<T> = {}
    for (const fill of steps) fill(r, target)
    return target
  }
}

function compileSummary(schema: AvroSchema): Read<PartitionSummary> {
  const read = compileRecord(schema, summaryFields)
  return (r) => {
    const summary = read(r)
    return { ...summary, containsNull: summary.containsNull ?? true }
  }
}

/** The manifests of a snapshot. */
export function readManifestList(file: Uint8Array, location: string): ManifestFile[] {
  const avro = openAvro(file, location)
  const read = compileRecord(avro.schema, manifestFields)
  const manifests: ManifestFile[] = []
  for (const block of avro.blocks()) {
    const reader = new AvroReader(block.data)
    for (let i = 0; i < block.count; i += 1) manifests.push(complete(read(reader), location))
  }
  return manifests
}

/** v1 lists have no sequence numbers, and no content: their manifests are data, of sequence number 0. */
function complete(manifest: Draft<ManifestFile>, location: string): ManifestFile {
  const { manifestPath, manifestLength, partitionSpecId, addedSnapshotId } = manifest
  if (manifestPath === undefined || manifestLength === undefined || partitionSpecId === undefined) {
    throw new IcebergError('manifest_invalid', `${location} lacks the path, length or partition spec of a manifest`)
  }
  if (addedSnapshotId === undefined) {
    throw new IcebergError('manifest_invalid', `${location} does not say which snapshot added ${manifestPath}`)
  }
  if (manifest.keyMetadata !== undefined && manifest.keyMetadata.length > 0) {
    throw new IcebergError('metadata_unsupported', `${manifestPath} is encrypted; encryption is not supported`)
  }
  return {
    ...manifest,
    manifestPath,
    manifestLength,
    partitionSpecId,
    addedSnapshotId,
    content: manifest.content ?? 'data',
    sequenceNumber: manifest.sequenceNumber ?? 0n,
    minSequenceNumber: manifest.minSequenceNumber ?? 0n,
  }
}
