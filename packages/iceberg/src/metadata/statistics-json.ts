import { IcebergError } from '../errors.ts'
import type { Json, JsonObject } from '../json/json.ts'
import { compact, defined, ObjectReader } from '../json/object-reader.ts'
import type { PartitionStatisticsFile, StatisticsBlob, StatisticsFile } from './statistics.ts'

export function statisticsFromJson(json: Json | undefined, what = 'statistics'): StatisticsFile {
  const r = new ObjectReader(json, what)
  if (r.optionalString('key-metadata') !== undefined) {
    throw new IcebergError('metadata_unsupported', `${what} is encrypted; encryption is not supported`)
  }
  return {
    snapshotId: r.long('snapshot-id'),
    statisticsPath: r.string('statistics-path'),
    fileSizeInBytes: r.long('file-size-in-bytes'),
    fileFooterSizeInBytes: r.long('file-footer-size-in-bytes'),
    blobMetadata: r.array('blob-metadata', blobFromJson),
    ...r.unknown(),
  }
}

function blobFromJson(json: Json, what: string): StatisticsBlob {
  const r = new ObjectReader(json, what)
  return defined({
    type: r.string('type'),
    snapshotId: r.long('snapshot-id'),
    sequenceNumber: r.long('sequence-number'),
    fields: r.array('fields', (id, where) => {
      if (typeof id !== 'number') throw new IcebergError('metadata_invalid', `${where} is not a field id`)
      return id
    }),
    properties: r.optionalStrings('properties'),
    ...r.unknown(),
  })
}

export function statisticsToJson(file: StatisticsFile): JsonObject {
  return compact({
    'snapshot-id': file.snapshotId,
    'statistics-path': file.statisticsPath,
    'file-size-in-bytes': file.fileSizeInBytes,
    'file-footer-size-in-bytes': file.fileFooterSizeInBytes,
    'blob-metadata': file.blobMetadata.map((blob) =>
      compact({
        type: blob.type,
        'snapshot-id': blob.snapshotId,
        'sequence-number': blob.sequenceNumber,
        fields: blob.fields,
        properties: blob.properties,
        ...blob.unknownKeys,
      }),
    ),
    ...file.unknownKeys,
  })
}

export function partitionStatisticsFromJson(
  json: Json | undefined,
  what = 'partition statistics',
): PartitionStatisticsFile {
  const r = new ObjectReader(json, what)
  return {
    snapshotId: r.long('snapshot-id'),
    statisticsPath: r.string('statistics-path'),
    fileSizeInBytes: r.long('file-size-in-bytes'),
    ...r.unknown(),
  }
}

export function partitionStatisticsToJson(file: PartitionStatisticsFile): JsonObject {
  return compact({
    'snapshot-id': file.snapshotId,
    'statistics-path': file.statisticsPath,
    'file-size-in-bytes': file.fileSizeInBytes,
    ...file.unknownKeys,
  })
}
