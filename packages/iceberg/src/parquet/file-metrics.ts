import { open } from 'node:fs/promises'
import type { DuckDBConnection, DuckDBValue } from '@duckdb/node-api'
import { DuckDBBlobValue } from '@duckdb/node-api'
import { parquetMetadata, type FileMetaData, type SchemaElement } from 'hyparquet'
import { fieldsById, type SchemaField } from '../schema/schema.ts'
import { isNested, type Field, type PrimitiveType } from '../schema/type.ts'
import { uuidFromBytes } from '../values/bytes.ts'
import { compareValues } from '../values/compare.ts'
import { parseDecimal } from '../values/decimal.ts'
import type { Value } from '../values/value.ts'
import { lowerBound, upperBound } from './bounds.ts'
import { explained, sqlName } from './duckdb.ts'
import type { MetricsMode } from './metrics-modes.ts'
import { parquetSource } from './parquet-table.ts'

/** What a manifest keeps of a written file. */
export interface FileMetrics {
  readonly recordCount: number
  readonly fileSizeInBytes: number
  readonly splitOffsets: readonly number[]
  readonly columnSizes: ReadonlyMap<number, number>
  readonly valueCounts: ReadonlyMap<number, number>
  readonly nullValueCounts: ReadonlyMap<number, number>
  readonly nanValueCounts: ReadonlyMap<number, number>
  readonly lowerBounds: ReadonlyMap<number, Uint8Array>
  readonly upperBounds: ReadonlyMap<number, Uint8Array>
}

// The footer has exact values of every type, if none is converted on the way: dates and timestamps as their numbers,
// texts as their bytes.
const unconverted = {
  stringFromBytes: (bytes: Uint8Array) => bytes,
  dateFromDays: (days: number) => days,
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  uuidFromBytes: (bytes: Uint8Array | undefined) => bytes,
}

/** The metrics of a file that DuckDB has just written; `texts` is what it returned of each column. */
export async function fileMetrics(
  connection: DuckDBConnection,
  path: string,
  { fields, modes }: { readonly fields: readonly Field[]; readonly modes: ReadonlyMap<number, MetricsMode> },
  texts: ReadonlyMap<string, ReadonlyMap<string, string>>,
): Promise<FileMetrics> {
  const { footer, size } = await footerBytes(path)
  const metadata = parquetMetadata(footer, { parsers: unconverted, geoparquet: false })
  const byId = fieldsById({ fields })
  const columns = leaves(metadata).map((element, index) => columnOf(metadata, element, index, byId))
  const metrics = {
    recordCount: Number(metadata.num_rows),
    fileSizeInBytes: size,
    splitOffsets: splitOffsets(metadata),
    columnSizes: new Map<number, number>(),
    valueCounts: new Map<number, number>(),
    nullValueCounts: new Map<number, number>(),
    nanValueCounts: new Map<number, number>(),
    lowerBounds: new Map<number, Uint8Array>(),
    upperBounds: new Map<number, Uint8Array>(),
  }
  const unsure: Column[] = []
  for (const column of columns) {
    if (column === undefined) continue
    const { field, type, bytes, values, nulls } = column
    metrics.columnSizes.set(field.id, bytes)
    const mode = modes.get(field.id) ?? { mode: 'none' }
    if (mode.mode === 'none') continue
    metrics.valueCounts.set(field.id, values)
    metrics.nullValueCounts.set(field.id, nulls)
    const isFloat = type.type === 'float' || type.type === 'double'
    if (isFloat) metrics.nanValueCounts.set(field.id, 0)
    if (column.repeated) continue
    const range = type.type === 'decimal' ? decimalRange(type, texts.get(quoted(field))) : column.range
    if (range === 'unknown') {
      if (isFloat || mode.mode !== 'counts') unsure.push(column)
    } else if (range !== undefined && mode.mode !== 'counts') setBounds(column, range)
  }
  for (const { column, range, nans } of await lookedUp(connection, path, unsure)) {
    if (nans !== undefined) metrics.nanValueCounts.set(column.field.id, nans)
    if (range !== undefined && modes.get(column.field.id)?.mode !== 'counts') setBounds(column, range)
  }
  return metrics

  function setBounds({ field, type }: Column, { min, max }: Range): void {
    const mode = modes.get(field.id) ?? { mode: 'none' }
    const lower = lowerBound(type, min, mode)
    const upper = upperBound(type, max, mode)
    if (lower !== undefined) metrics.lowerBounds.set(field.id, lower)
    if (upper !== undefined) metrics.upperBounds.set(field.id, upper)
  }
}

interface Range {
  readonly min: Value
  readonly max: Value
}

interface Column {
  readonly field: SchemaField
  readonly type: PrimitiveType
  /** Inside a list or map: no bounds are kept of it. */
  readonly repeated: boolean
  readonly bytes: number
  readonly values: number
  readonly nulls: number
  /** Undefined: it has nulls only. Unknown: the footer does not tell, or not exactly. */
  readonly range: Range | 'unknown' | undefined
}

/** The elements that hold values, in the order of the columns. */
function leaves(metadata: FileMetaData): SchemaElement[] {
  return metadata.schema.filter((element) => element.type !== undefined)
}

function columnOf(
  metadata: FileMetaData,
  element: SchemaElement,
  index: number,
  byId: ReadonlyMap<number, SchemaField>,
): Column | undefined {
  const field = byId.get(element.field_id ?? -1)
  if (field === undefined || isNested(field.type)) return undefined
  const type = field.type
  let [bytes, values, nulls] = [0, 0, 0]
  let range: Range | 'unknown' | undefined
  for (const group of metadata.row_groups) {
    const chunk = group.columns[index]?.meta_data
    if (chunk === undefined) continue
    const { statistics } = chunk
    const nullsHere = Number(statistics?.null_count ?? 0)
    bytes += Number(chunk.total_compressed_size)
    values += Number(chunk.num_values)
    nulls += nullsHere
    if (nullsHere === Number(chunk.num_values) || range === 'unknown') continue
    const inexact = statistics?.is_min_value_exact === false || statistics?.is_max_value_exact === false
    const [min, max] = [footerValue(type, statistics?.min_value), footerValue(type, statistics?.max_value)]
    range = inexact || min === undefined || max === undefined ? 'unknown' : joined(type, range, { min, max })
  }
  return { field, type, repeated: isRepeated(field, byId), bytes, values, nulls, range }
}

function joined(type: PrimitiveType, a: Range | undefined, b: Range): Range {
  if (a === undefined) return b
  return {
    min: compareValues(type, a.min, b.min) <= 0 ? a.min : b.min,
    max: compareValues(type, a.max, b.max) >= 0 ? a.max : b.max,
  }
}

function footerValue(type: PrimitiveType, value: unknown): Value | undefined {
  if (!(value instanceof Uint8Array)) return value as Value | undefined
  if (type.type === 'string') return Buffer.from(value).toString('utf8')
  return type.type === 'uuid' ? uuidFromBytes(value) : Uint8Array.from(value)
}

function isRepeated(field: SchemaField, byId: ReadonlyMap<number, SchemaField>): boolean {
  for (let at = field.parentId; at !== undefined; at = byId.get(at)?.parentId) {
    if (byId.get(at)?.type.type !== 'struct') return true
  }
  return false
}

/** The reader of footers makes numbers of decimals, which loses digits; DuckDB returned them as texts. */
function decimalRange(
  { scale }: PrimitiveType & { type: 'decimal' },
  texts: ReadonlyMap<string, string> | undefined,
): Range | 'unknown' | undefined {
  const [min, max] = [texts?.get('min'), texts?.get('max')]
  if (min !== undefined && max !== undefined) return { min: parseDecimal(min, scale), max: parseDecimal(max, scale) }
  return texts?.get('null_count') === texts?.get('num_values') ? undefined : 'unknown'
}

function quoted(field: SchemaField): string {
  return field.path.map(sqlName).join('.')
}

/** The least and the greatest value, and how many are NaN, of columns whose footer does not tell. */
async function lookedUp(
  connection: DuckDBConnection,
  path: string,
  columns: readonly Column[],
): Promise<{ column: Column; range: Range | undefined; nans: number | undefined }[]> {
  if (columns.length === 0) return []
  const expressions = columns.flatMap(({ field, type }) => {
    const value = quoted(field)
    if (type.type !== 'float' && type.type !== 'double') return [`min(${value})`, `max(${value})`, 'null']
    const numbers = `filter (where not isnan(${value}))`
    return [`min(${value}) ${numbers}`, `max(${value}) ${numbers}`, `count(*) filter (where isnan(${value}))`]
  })
  const sql = `select ${expressions.join(', ')} from ${parquetSource(path)}`
  const row = (await explained(connection.runAndReadAll(sql))).getRows()[0] ?? []
  return columns.map((column, index) => {
    const [min, max, nans] = row.slice(index * 3, index * 3 + 3)
    const range = min === null || max === null ? undefined : { min: asValue(min), max: asValue(max) }
    return { column, range, nans: nans === null ? undefined : Number(nans) }
  })
}

function asValue(value: DuckDBValue | undefined): Value {
  return value instanceof DuckDBBlobValue ? Uint8Array.from(value.bytes) : (value as Value)
}

/** Where each row group begins. */
function splitOffsets(metadata: FileMetaData): number[] {
  const offsets: number[] = []
  for (const group of metadata.row_groups) {
    const first = group.columns[0]?.meta_data
    if (first === undefined) continue
    const data = Number(first.data_page_offset)
    const dictionary = first.dictionary_page_offset
    offsets.push(dictionary === undefined ? data : Math.min(data, Number(dictionary)))
  }
  return offsets
}

/** The end of a local file that holds its Parquet footer, and the size of the whole. */
async function footerBytes(path: string): Promise<{ footer: Uint8Array; size: number }> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const read = async (length: number): Promise<Buffer> => {
      const bytes = Buffer.alloc(Math.min(length, size))
      await file.read(bytes, 0, bytes.length, size - bytes.length)
      return bytes
    }
    const end = await read(64 * 1024)
    const length = end.readUInt32LE(end.length - 8) + 8
    return { footer: length <= end.length ? end : await read(length), size }
  } finally {
    await file.close()
  }
}
