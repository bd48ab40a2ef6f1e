import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile } from '../manifests/content-file.ts'
import { isUnpartitioned, type PartitionSpec } from '../schema/partition-spec.ts'
import { partitionSpecOf, schemaOf } from '../metadata/table-metadata.ts'
import { isNested, type Field } from '../schema/type.ts'
import type { DuckDb } from '../parquet/duckdb.ts'
import { metricsModes } from '../parquet/metrics-modes.ts'
import { assertCanWriteRows, writePartitioned, type Rows } from './write-files.ts'

/**
 * Writes files that delete every older row equal to one of the keys in the given columns; null equals null. In a
 * partitioned table a delete reaches its own partition only, so the keys must tell it: they hold the columns that the
 * table is partitioned by.
 */
export async function writeEqualityDeletes(
  duckdb: DuckDb,
  table: LoadedTable,
  columns: readonly string[],
  keys: Rows,
): Promise<ContentFile[]> {
  const { metadata } = table
  const name = tableName(table.identifier)
  if (metadata.formatVersion === 1) {
    throw new IcebergError(
      'metadata_unsupported',
      `Rows of ${name} cannot be deleted: its format version is 1. Upgrade it first.`,
    )
  }
  const schema = schemaOf(metadata)
  const fields = columns.map((column) => keyField(schema.fields, column, name))
  assertCanWriteRows(table, fields)
  const ids = fields.map((field) => field.id)
  const spec = specFor(table, ids)
  const modes = metricsModes(schema, metadata.properties)
  const kind = { content: 'equality-deletes', fields, modes, specId: spec.specId, equalityIds: ids } as const
  return await writePartitioned(duckdb, table, keys, kind)
}

function keyField(fields: readonly Field[], column: string, table: string): Field {
  const field = fields.find((f) => f.name === column)
  if (field === undefined) throw new IcebergError('value_invalid', `${table} has no column "${column}" to delete by`)
  if (isNested(field.type) || field.type.type === 'float' || field.type.type === 'double') {
    throw new IcebergError('value_invalid', `Rows of ${table} cannot be deleted by ${column}: it is ${field.type.type}`)
  }
  // A key has what it is given: no default stands in for null.
  return { id: field.id, name: field.name, type: field.type, required: false }
}

/** A spec whose deletes reach every row that equals a key of these columns. */
function specFor(table: LoadedTable, ids: readonly number[]): PartitionSpec {
  const { partitionSpecs } = table.metadata
  const everywhere = partitionSpecs.find(isUnpartitioned)
  if (everywhere !== undefined) return everywhere
  const spec = partitionSpecOf(table.metadata)
  const tellsPartition = spec.fields.every((field) => field.transform.name === 'void' || ids.includes(field.sourceId))
  // Files of another spec are out of the reach of a delete that has a partition.
  if (tellsPartition && partitionSpecs.length === 1) return spec
  const why = tellsPartition ? 'it has files of several partition specs' : 'the columns do not tell the partition'
  throw new IcebergError(
    'value_invalid',
    `Rows of ${tableName(table.identifier)} cannot be deleted by these columns: ${why}, and a delete of a partition ` +
      'reaches no other. Add the columns the table is partitioned by, or delete by position.',
  )
}

/** Refuses deletes of a partition once the table has another spec: rows under that one are out of their reach. */
export function assertReachAll({ identifier, metadata }: LoadedTable, deletes: readonly ContentFile[]): void {
  const [first] = deletes
  if (first === undefined || metadata.partitionSpecs.length === 1) return
  if (isUnpartitioned(partitionSpecOf(metadata, first.specId))) return
  throw new IcebergError(
    'commit_conflict',
    `The partition spec of ${tableName(identifier)} was changed meanwhile, and a delete of a partition reaches no other. ` +
      'Nothing was deleted; try again.',
  )
}
