import { tableName, type LoadedTable } from '../catalogs/catalog.ts'
import { IcebergError } from '../errors.ts'
import type { ContentFile, PartitionValues } from '../manifests/content-file.ts'
import { childrenOf } from '../schema/schema.ts'
import { partitionSpecOf, schemaOf, sortOrderOf } from '../metadata/table-metadata.ts'
import type { Field } from '../schema/type.ts'
import { explained, sqlName, type DuckDb } from '../parquet/duckdb.ts'
import { metricsModes } from '../parquet/metrics-modes.ts'
import { parquetSource } from '../parquet/parquet-table.ts'
import { duckDbType } from '../parquet/write-types.ts'
import { NewFiles } from '../storage/new-files.ts'
import type { CallOptions } from '../storage/storage.ts'
import { assertCanWriteRows, writeFile, type FileKind } from './write-files.ts'

/**
 * A DuckDB select whose columns are those of the table: their names, the types that DuckDB has for theirs, their order.
 * The rows are all of one partition, which is taken on trust.
 */
export interface Relation {
  readonly select: string
  /** The spec its partition is of. Default: the table's default spec. */
  readonly specId?: number
  /** Default: that of an unpartitioned table. */
  readonly partition?: PartitionValues
}

/** Writes the rows of a select as one data file, however large; undefined when there are none. */
export async function writeRelation(
  duckdb: DuckDb,
  table: LoadedTable,
  relation: Relation,
  options: CallOptions = {},
): Promise<ContentFile | undefined> {
  assertCanWriteRows(table)
  const { metadata } = table
  const schema = schemaOf(metadata)
  const name = tableName(table.identifier)
  const kind: FileKind = {
    content: 'data',
    fields: schema.fields,
    modes: metricsModes(schema, metadata.properties, sortOrderOf(metadata)),
    specId: relation.specId ?? metadata.defaultSpecId,
    sortOrderId: 0,
  }
  const spec = partitionSpecOf(metadata, kind.specId)
  const partition = relation.partition ?? spec.fields.map(() => null)
  if (partition.length !== spec.fields.length) {
    throw new IcebergError(
      'value_invalid',
      `Partition spec ${spec.specId} has ${spec.fields.length} values, not ${partition.length}`,
    )
  }
  await assertColumns(duckdb, relation.select, schema.fields, name)
  const newFiles = new NewFiles(table.storage, options)
  try {
    const file = await writeFile(duckdb, newFiles, table, kind, relation.select, partition, (connection, path) =>
      assertNoNulls(connection, path, schema.fields, name),
    )
    if (file.recordCount > 0) await newFiles.keep()
    else await newFiles.remove()
    return file.recordCount > 0 ? file : undefined
  } catch (error) {
    await newFiles.remove()
    throw error
  }
}

/** A column of another type would be written as that type, and readers would fail on the file. */
async function assertColumns(duckdb: DuckDb, select: string, fields: readonly Field[], table: string): Promise<void> {
  const given = await duckdb.using(async (connection) => {
    const reader = await explained(connection.runAndReadAll(`select * from (${select}) limit 0`))
    const types = reader.columnTypes()
    return reader.columnNames().map((name, index) => `${sqlName(name)} ${types[index]?.toString() ?? ''}`)
  })
  const wanted = fields.map((field) => `${sqlName(field.name)} ${duckDbType(field.type).toString()}`)
  const wrong = Array.from({ length: Math.max(given.length, wanted.length) }, (_, n) => n).find(
    (n) => given[n] !== wanted[n],
  )
  if (wrong === undefined) return
  throw new IcebergError(
    'value_invalid',
    `The select for ${table} has ${given[wrong] ?? 'nothing'} as column ${wrong}, which must be ${wanted[wrong] ?? 'absent'}`,
  )
}

type Connection = Parameters<Parameters<DuckDb['using']>[0]>[0]

/** DuckDB makes every column optional, so it is looked in the file that what is required is there. */
export async function assertNoNulls(
  connection: Connection,
  path: string,
  fields: readonly Field[],
  table: string,
): Promise<void> {
  const tests = fields.flatMap((field) => {
    const lacks = missing(sqlName(field.name), field)
    return lacks === undefined ? [] : [{ field, lacks }]
  })
  if (tests.length === 0) return
  const counts = tests.map(({ lacks }) => `count(*) filter (where ${lacks})::double`).join(', ')
  const sql = `select ${counts} from ${parquetSource(path)}`
  const row = (await explained(connection.runAndReadAll(sql))).getRows()[0] ?? []
  for (const [index, { field }] of tests.entries()) {
    if (Number(row[index]) === 0) continue
    throw new IcebergError(
      'value_invalid',
      `${Number(row[index])} rows for ${table} lack a value that is required, in column ${field.name}`,
    )
  }
}

/** SQL that is true of a value that is not there, or in which something is not there, that must be. */
function missing(value: string, { required, type }: Field, depth = 0): string | undefined {
  const tests = required ? [`${value} is null`] : []
  for (const child of childrenOf(type)) {
    const item = `x${depth}`
    if (type.type === 'struct') {
      const inside = missing(`${value}.${sqlName(child.name)}`, child, depth)
      if (inside !== undefined) tests.push(`(${value} is not null and (${inside}))`)
      continue
    }
    const inside = missing(item, child, depth + 1)
    const list = type.type === 'list' ? value : `map_${child.name}s(${value})`
    if (inside !== undefined) tests.push(`len(list_filter(${list}, lambda ${item}: ${inside})) > 0`)
  }
  return tests.length === 0 ? undefined : tests.join(' or ')
}
