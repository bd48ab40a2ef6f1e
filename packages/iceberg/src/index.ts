export { IcebergError, icebergErrorCodes, type IcebergErrorCode } from './errors.ts'

export { NumberText, parseJson, stringifyJson, type Json, type JsonObject } from './json/json.ts'

export {
  isNested,
  plainTypeNames,
  sameType,
  typeName,
  type Field,
  type ListType,
  type MapType,
  type NestedType,
  type PlainTypeName,
  type PrimitiveType,
  type StructType,
  type Type,
} from './schema/type.ts'
export { childrenOf, fieldsById, findField, highestFieldId, type Schema, type SchemaField } from './schema/schema.ts'
export {
  isUnpartitioned,
  transformText,
  type PartitionField,
  type PartitionSpec,
  type Transform,
} from './schema/partition-spec.ts'
export type { SortField, SortOrder } from './schema/sort-order.ts'
export type { Snapshot, SnapshotOperation, SnapshotRef } from './metadata/snapshot.ts'
export type { PartitionStatisticsFile, StatisticsBlob, StatisticsFile } from './metadata/statistics.ts'
export {
  currentSnapshot,
  findSnapshot,
  mainBranch,
  partitionSpecOf,
  schemaOf,
  sortOrderOf,
  type FormatVersion,
  type MetadataLogEntry,
  type SnapshotLogEntry,
  type TableMetadata,
} from './metadata/table-metadata.ts'
export type { MetadataRequirement, MetadataUpdate } from './metadata/update.ts'
export type { Retention } from './metadata/refs.ts'
export { parseTableMetadata, serializeTableMetadata, metadataFileExtension } from './metadata/metadata-file.ts'
export { tableMetadataFromJson, tableMetadataToJson } from './metadata/table-metadata-json.ts'
export { schemaFromJson, schemaToJson } from './schema/schema-json.ts'
export { parsePrimitiveType } from './schema/type-json.ts'
export { parseTransform, partitionSpecFromJson, partitionSpecToJson } from './schema/partition-spec-json.ts'
export { sortOrderFromJson, sortOrderToJson } from './schema/sort-order-json.ts'
export { snapshotFromJson, snapshotToJson } from './metadata/snapshot-json.ts'
export { assertWritable } from './metadata/validate.ts'
export { createTableMetadata, type CreateTableOptions } from './metadata/create-table-metadata.ts'
export { applyUpdates, droppedMetadataFiles, type ApplyUpdatesOptions } from './metadata/apply-updates.ts'
export { checkRequirements } from './metadata/requirements.ts'
export { requirementFromJson, requirementToJson, updateFromJson, updateToJson } from './metadata/update-json.ts'
export { canWiden, evolveSchema, schemaUpdates, type ColumnName, type SchemaChange } from './metadata/evolve-schema.ts'
export { evolvePartitionSpec, partitionSpecUpdates, type PartitionChange } from './metadata/evolve-partition-spec.ts'
export { sortOrderUpdates, type SortColumn } from './metadata/evolve-sort-order.ts'
export {
  mappedFieldOf,
  nameMappingOf,
  parseNameMapping,
  serializeNameMapping,
  type MappedField,
} from './schema/name-mapping.ts'

export type { Value } from './values/value.ts'
export { valueFromBytes, valueToBytes } from './values/binary.ts'
export { valueFromJson, valueToJson, type MapEntries, type NestedValue } from './values/json-value.ts'
export { applyTransform, bucketHash, transformedType, truncateString } from './values/transform.ts'
export { formatDecimal, parseDecimal } from './values/decimal.ts'
export { compareValues } from './values/compare.ts'

export {
  fileKey,
  type ContentFile,
  type EntryStatus,
  type FileContent,
  type FileFormat,
  type ManifestEntry,
  type PartitionValues,
} from './manifests/content-file.ts'
export type { ManifestFile, PartitionSummary } from './manifests/manifest-file.ts'
export { partitionKey } from './manifests/partition-key.ts'
export { partitionType, type PartitionTypeField } from './manifests/partition-type.ts'
export {
  embeddedManifest,
  readManifest,
  readManifestHeader,
  streamManifest,
  type ManifestHeader,
  type ManifestSource,
  type ReadManifestOptions,
} from './manifests/read-manifest.ts'
export { readManifestList } from './manifests/read-manifest-list.ts'
export {
  createManifestWriter,
  type ManifestWriter,
  type ManifestWriterOptions,
  type NewManifestEntry,
} from './manifests/write-manifest.ts'
export {
  writeManifestList,
  type ManifestListOptions,
  type WrittenManifestList,
} from './manifests/write-manifest-list.ts'
export type { AvroCodec } from './avro/codec.ts'

export { PositionSet } from './puffin/position-set.ts'
export { deletionVectorType, parseDeletionVector, serializeDeletionVector } from './puffin/deletion-vector.ts'
export { writeDeletionVectors, type WrittenDeletionVector } from './puffin/write-deletion-vectors.ts'
export {
  puffinFooterLength,
  readPuffinBlob,
  readPuffinFooter,
  writePuffin,
  type NewPuffinBlob,
  type PuffinBlob,
  type PuffinFooter,
} from './puffin/puffin.ts'

export * from './storage/index.ts'
export * from './catalogs/index.ts'
export * from './commit/index.ts'
export * from './snapshot/index.ts'
export * from './write/index.ts'
export { unwritableTypes } from './parquet/write-types.ts'
export type { Row } from './parquet/write-values.ts'
export * from './scan/index.ts'
export { DuckDb, type DuckDbOptions } from './parquet/duckdb.ts'
export { readFooter, type FooterSource, type ParquetFooter } from './parquet/footer.ts'
export type { ParquetColumn, ParquetType } from './parquet/parquet-column.ts'
export * from './actions/rewrite-manifests/index.ts'
export * from './actions/rewrite-position-delete-files/index.ts'
export * from './facts/index.ts'
export { createTable, openTable, Table, type OpenTableOptions, type SnapshotOptions } from './table.ts'
export type { ActionCosts, ActionProgress, ActionRun, DoneOf, PlannedTable } from './actions/action.ts'
export * from './actions/expire-snapshots/index.ts'
export * from './actions/remove-orphan-files/index.ts'
export * from './actions/rewrite-data-files/index.ts'
export type { GivenOptions, OptionDefinition } from './actions/option-table.ts'
