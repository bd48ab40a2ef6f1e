import { IcebergError } from '../errors.ts'
import { jsonText, stringifyJson, type Json, type JsonObject } from '../json/json.ts'
import { atOnce, type Steps } from '../json/steps.ts'
import { compact, defined, isObject, ObjectReader } from '../json/object-reader.ts'
import type { PartitionSpec } from '../schema/partition-spec.ts'
import {
  partitionFieldsFromJson,
  partitionFieldsToJson,
  partitionSpecFromJson,
  partitionSpecToJson,
} from '../schema/partition-spec-json.ts'
import type { Schema } from '../schema/schema.ts'
import { schemaFromJson, schemaToJson } from '../schema/schema-json.ts'
import type { SnapshotRef } from './snapshot.ts'
import { refFromJson, refToJson, snapshotFromJson, snapshotToJson } from './snapshot-json.ts'
import type { SortOrder } from '../schema/sort-order.ts'
import { sortOrderFromJson, sortOrderToJson } from '../schema/sort-order-json.ts'
import {
  partitionStatisticsFromJson,
  partitionStatisticsToJson,
  statisticsFromJson,
  statisticsToJson,
} from './statistics-json.ts'
import { type FormatVersion, mainBranch, partitionSpecOf, schemaOf, type TableMetadata } from './table-metadata.ts'
import { checkTableMetadata } from './validate.ts'

/** Reads table metadata from parsed JSON, checks it, and keeps what it does not know. */
export function tableMetadataFromJson(json: Json | undefined, what = 'table metadata'): TableMetadata {
  return atOnce(tableMetadataSteps(json, what))
}

/** The same in steps. */
export function* tableMetadataSteps(json: Json | undefined, what: string): Steps<TableMetadata> {
  const r = new ObjectReader(json, what)
  const formatVersion = readFormatVersion(r, what)
  const keys = r.raw('encryption-keys')
  if (Array.isArray(keys) && keys.length > 0) {
    throw new IcebergError('metadata_unsupported', `${what} has encryption keys; encrypted tables are not supported`)
  }
  const current = r.optionalLong('current-snapshot-id')
  const currentSnapshotId = current === undefined || current === -1n ? undefined : current
  const snapshots = (yield* r.optionalArraySteps('snapshots', snapshotFromJson)) ?? []
  const snapshotLog = (yield* r.optionalArraySteps('snapshot-log', snapshotLogEntry)) ?? []
  const metadata: TableMetadata = defined({
    formatVersion,
    tableUuid: formatVersion === 1 ? r.optionalString('table-uuid') : r.string('table-uuid'),
    location: r.string('location'),
    lastSequenceNumber: formatVersion === 1 ? (r.raw('last-sequence-number'), 0n) : r.long('last-sequence-number'),
    lastUpdatedMs: r.int('last-updated-ms'),
    lastColumnId: r.int('last-column-id'),
    ...readSchemas(r, formatVersion),
    ...readSpecs(r, formatVersion),
    ...readSortOrders(r, formatVersion),
    properties: r.optionalStrings('properties') ?? {},
    currentSnapshotId,
    snapshots,
    snapshotLog,
    metadataLog: r.optionalArray('metadata-log', metadataLogEntry) ?? [],
    refs: readRefs(r, currentSnapshotId),
    statistics: r.optionalArray('statistics', statisticsFromJson) ?? [],
    partitionStatistics: r.optionalArray('partition-statistics', partitionStatisticsFromJson) ?? [],
    nextRowId: formatVersion >= 3 ? r.long('next-row-id') : (r.raw('next-row-id'), 0n),
    ...r.unknown(),
  })
  yield* checkTableMetadata(metadata, what)
  return metadata
}

function readFormatVersion(r: ObjectReader, what: string): FormatVersion {
  const version = r.int('format-version')
  if (version === 1 || version === 2 || version === 3) return version
  throw new IcebergError(
    'metadata_unsupported',
    `${what} has format version ${version}; this release reads and writes 1, 2 and 3`,
  )
}

function readSchemas(r: ObjectReader, version: FormatVersion): { currentSchemaId: number; schemas: Schema[] } {
  const deprecated = r.raw('schema')
  const schemas = r.optionalArray('schemas', schemaFromJson)
  if (schemas !== undefined) return { schemas, currentSchemaId: r.int('current-schema-id') }
  if (version > 1) throw new IcebergError('metadata_invalid', `"schemas" must exist in format version ${version}`)
  const schema = schemaFromJson(deprecated)
  r.raw('current-schema-id')
  return { schemas: [schema], currentSchemaId: schema.schemaId }
}

type Specs = { defaultSpecId: number; partitionSpecs: PartitionSpec[]; lastPartitionId: number }

function readSpecs(r: ObjectReader, version: FormatVersion): Specs {
  const hasDeprecated = r.raw('partition-spec') !== undefined
  let specs = r.optionalArray('partition-specs', partitionSpecFromJson)
  let defaultSpecId = r.optionalInt('default-spec-id')
  if (specs === undefined) {
    if (version > 1) {
      throw new IcebergError('metadata_invalid', `"partition-specs" must exist in format version ${version}`)
    }
    specs = [{ specId: 0, fields: hasDeprecated ? partitionFieldsFromJson(r, 'partition-spec') : [] }]
    defaultSpecId = 0
  }
  const highest = Math.max(999, ...specs.flatMap((spec) => spec.fields.map((field) => field.fieldId)))
  const lastPartitionId = version === 1 ? (r.optionalInt('last-partition-id') ?? highest) : r.int('last-partition-id')
  return { partitionSpecs: specs, defaultSpecId: defaultSpecId ?? r.int('default-spec-id'), lastPartitionId }
}

function readSortOrders(
  r: ObjectReader,
  version: FormatVersion,
): { defaultSortOrderId: number; sortOrders: SortOrder[] } {
  const sortOrders = r.optionalArray('sort-orders', sortOrderFromJson)
  if (sortOrders !== undefined) return { sortOrders, defaultSortOrderId: r.int('default-sort-order-id') }
  if (version > 1) throw new IcebergError('metadata_invalid', `"sort-orders" must exist in format version ${version}`)
  r.raw('default-sort-order-id')
  return { sortOrders: [{ orderId: 0, fields: [] }], defaultSortOrderId: 0 }
}

function readRefs(r: ObjectReader, currentSnapshotId: bigint | undefined): Map<string, SnapshotRef> {
  const json = r.raw('refs') ?? {}
  if (!isObject(json)) throw new IcebergError('metadata_invalid', '"refs" is not an object')
  const refs = new Map(Object.entries(json).map(([name, ref]) => [name, refFromJson(ref, `ref "${name}"`)]))
  // Before refs were written, main was the current snapshot.
  if (currentSnapshotId !== undefined && !refs.has(mainBranch)) {
    refs.set(mainBranch, { snapshotId: currentSnapshotId, type: 'branch' })
  }
  return refs
}

function snapshotLogEntry(json: Json, what: string): TableMetadata['snapshotLog'][number] {
  const r = new ObjectReader(json, what)
  return { timestampMs: r.int('timestamp-ms'), snapshotId: r.long('snapshot-id'), ...r.unknown() }
}

function metadataLogEntry(json: Json, what: string): TableMetadata['metadataLog'][number] {
  const r = new ObjectReader(json, what)
  return { timestampMs: r.int('timestamp-ms'), metadataFile: r.string('metadata-file'), ...r.unknown() }
}

function snapshotLogEntryToJson(entry: TableMetadata['snapshotLog'][number]): JsonObject {
  return compact({ 'timestamp-ms': entry.timestampMs, 'snapshot-id': entry.snapshotId, ...entry.unknownKeys })
}

/** The text of the JSON of table metadata, in pieces. */
export function* tableMetadataText(metadata: TableMetadata): Generator<string> {
  const rest = tableMetadataToJson({ ...metadata, snapshots: [], snapshotLog: [] })
  let lead = '{'
  for (const [key, value] of Object.entries(rest)) {
    yield `${lead}${stringifyJson(key)}:`
    if (key === 'snapshots') yield* arrayText(metadata.snapshots, snapshotToJson)
    else if (key === 'snapshot-log') yield* arrayText(metadata.snapshotLog, snapshotLogEntryToJson)
    else yield stringifyJson(value)
    lead = ','
  }
  yield '}'
}

function* arrayText<T>(items: readonly T[], toJson: (item: T) => JsonObject): Generator<string> {
  let lead = '['
  for (const item of items) {
    yield `${lead}${jsonText(toJson(item))}`
    lead = ','
  }
  yield items.length === 0 ? '[]' : ']'
}

/** The JSON of table metadata, as its format version has it. */
export function tableMetadataToJson(metadata: TableMetadata): JsonObject {
  const version = metadata.formatVersion
  // Readers of v1 tables expect -1 where there is no snapshot; null came with v3.
  const noSnapshot = version >= 3 ? null : -1
  return compact({
    'format-version': version,
    'table-uuid': metadata.tableUuid,
    location: metadata.location,
    'last-sequence-number': version > 1 ? metadata.lastSequenceNumber : undefined,
    'last-updated-ms': metadata.lastUpdatedMs,
    'last-column-id': metadata.lastColumnId,
    schema: version === 1 ? schemaToJson(schemaOf(metadata)) : undefined,
    'current-schema-id': metadata.currentSchemaId,
    schemas: metadata.schemas.map(schemaToJson),
    'partition-spec': version === 1 ? partitionFieldsToJson(partitionSpecOf(metadata)) : undefined,
    'default-spec-id': metadata.defaultSpecId,
    'partition-specs': metadata.partitionSpecs.map(partitionSpecToJson),
    'last-partition-id': metadata.lastPartitionId,
    'default-sort-order-id': metadata.defaultSortOrderId,
    'sort-orders': metadata.sortOrders.map(sortOrderToJson),
    properties: metadata.properties,
    'current-snapshot-id': metadata.currentSnapshotId ?? noSnapshot,
    'next-row-id': version >= 3 ? metadata.nextRowId : undefined,
    refs: Object.fromEntries([...metadata.refs].map(([name, ref]) => [name, refToJson(ref)])),
    snapshots: metadata.snapshots.map(snapshotToJson),
    statistics: metadata.statistics.map(statisticsToJson),
    'partition-statistics': metadata.partitionStatistics.map(partitionStatisticsToJson),
    'snapshot-log': metadata.snapshotLog.map(snapshotLogEntryToJson),
    'metadata-log': metadata.metadataLog.map((entry) =>
      compact({ 'timestamp-ms': entry.timestampMs, 'metadata-file': entry.metadataFile, ...entry.unknownKeys }),
    ),
    ...metadata.unknownKeys,
  })
}
