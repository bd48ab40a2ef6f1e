import type { DuckDBConnection } from '@duckdb/node-api'
import type { ContentFile } from '../manifests/content-file.ts'
import { execute, explained } from '../parquet/duckdb.ts'
import type { ParquetColumn } from '../parquet/parquet-column.ts'
import type { Value } from '../values/value.ts'
import { partitionKey } from '../manifests/partition-key.ts'
import type { PlanContext, ScanFile } from './plan.ts'
import type { OpenFile } from './table-reader.ts'

// A thousand files as a thousand selects cost DuckDB nearly twice the time of one select over them all. Files can be one
// when nothing in the SQL differs: their columns, the values that are only in their partitions, and, where there are
// equality deletes, the partition, since those reach every older file of it. The values must also be stored alike, because
// DuckDB takes the types of the first file.

/** Files that one select reads. */
export interface FileGroup {
  readonly files: ScanFile[]
  /** The places of the files among all that are read together. */
  readonly places: number[]
  readonly paths: string[]
  readonly columns: readonly ParquetColumn[]
  readonly identityValues: ReadonlyMap<number, Value | null>
}

/** Puts files that can be read as one together, in the order of their first. */
export function groupFiles(files: readonly ScanFile[], opened: readonly OpenFile[], context: PlanContext): FileGroup[] {
  const groups = new Map<string, FileGroup>()
  for (const [index, { path, columns, stored }] of opened.entries()) {
    const scanned = files[index] as ScanFile
    const values = identityValues(scanned.file, context)
    const isInFile = (id: number): boolean => columns.some(({ fieldId }) => fieldId === id)
    const ofPartition = scanned.deletes.equality.length > 0 || ![...values.keys()].every(isInFile)
    const partition = ofPartition ? partitionKey(scanned.file.specId, scanned.file.partition) : ''
    const key = `${partition} ${scanned.deletes.equality.length > 0} ${JSON.stringify(columns)} ${stored}`
    const group = groups.get(key) ?? { files: [], places: [], paths: [], columns, identityValues: values }
    group.files.push(scanned)
    group.places.push(index)
    group.paths.push(path)
    groups.set(key, group)
  }
  return [...groups.values()]
}

/** What is known of each file of a group, by its place in the group. */
export async function createGroupTable(
  connection: DuckDBConnection,
  name: string,
  { files, places }: FileGroup,
): Promise<void> {
  const columns = 'file bigint, place bigint, path varchar, seq bigint, first_row_id bigint'
  await execute(connection, `create temp table ${name} (${columns})`)
  const appender = await explained(connection.createAppender(name, 'main', 'temp'))
  for (const [index, { file, sequenceNumber }] of files.entries()) {
    appender.appendBigInt(BigInt(index))
    appender.appendBigInt(BigInt(places[index] ?? index))
    appender.appendVarchar(file.filePath)
    appender.appendBigInt(sequenceNumber)
    if (file.firstRowId === undefined) appender.appendNull()
    else appender.appendBigInt(file.firstRowId)
    appender.endRow()
  }
  appender.closeSync()
}

/** The values of identity partition fields by the id of their source column. */
export function identityValues(file: ContentFile, context: PlanContext): ReadonlyMap<number, Value | null> {
  const values = new Map<number, Value | null>()
  for (const [index, field] of context.specOf(file.specId).spec.fields.entries()) {
    const value = file.partition[index]
    if (field.transform.name === 'identity' && value !== undefined) values.set(field.sourceId, value)
  }
  return values
}
