import { IcebergError } from '../../errors.ts'
import type { ByteRange } from '../../storage/storage.ts'
import { viewOf } from '../../values/bytes.ts'
import type { FooterSource } from '../footer.ts'
import { binaryList, ThriftStruct } from '../thrift-compact.ts'
import {
  columnChunk,
  columnMetaData,
  fileMetaData,
  lastKnownField,
  rowGroup,
  schemaElement,
  statistics,
} from './parquet-fields.ts'

/** Why the bytes of a file cannot be copied into another. */
export type UnjoinableReason =
  | 'encrypted'
  | 'external_chunks'
  | 'unknown_feature'
  | 'damaged'
  | 'old_writer'
  | 'small_row_groups'
  | 'lineage_nulls'
  | 'lineage_unknown'
  | 'alone'

export interface Unjoinable {
  readonly reason: UnjoinableReason
  /** A sentence for people. */
  readonly why: string
}

/** A column of a row group: where its pages are, and where what belongs to them is. */
export interface Chunk {
  readonly struct: ThriftStruct
  readonly metaData: ThriftStruct
  /** Its pages, a dictionary included. */
  readonly pages: ByteRange
  readonly valueCount: number
  /** Undefined where the file does not say. */
  readonly nullCount: number | undefined
  readonly offsetIndex: ByteRange | undefined
  readonly columnIndex: ByteRange | undefined
  readonly bloomFilter: { readonly offset: number; readonly length: number | undefined } | undefined
}

export interface RowGroup {
  readonly struct: ThriftStruct
  readonly rowCount: number
  readonly chunks: readonly Chunk[]
}

/** A column that holds values. */
export interface Leaf {
  readonly element: ThriftStruct
  readonly path: readonly string[]
}

/** Everything a Parquet file says of itself, kept as it is written, with the places of its parts. */
export interface WholeFooter {
  readonly location: string
  readonly size: number
  readonly metadata: ThriftStruct
  readonly schema: readonly ThriftStruct[]
  readonly leaves: readonly Leaf[]
  readonly rowCount: number
  readonly groups: readonly RowGroup[]
  /** What stands in the way of copying its bytes, whatever they are to be joined with. */
  readonly unjoinable: Unjoinable | undefined
}

const tailBytes = 8
const firstRead = 64 * 1024

/** Reads the footer of a Parquet file so that it can be written again. */
export async function readWholeFooter(source: FooterSource): Promise<WholeFooter> {
  const { location, size } = source
  const read = async (offset: number, length: number): Promise<Buffer> => viewOf(await source.read({ offset, length }))
  if (size < tailBytes + 4) throw invalid(location, `it has only ${size} bytes`)
  const guess = Math.min(size, firstRead)
  const end = await read(size - guess, guess)
  const magic = end.toString('latin1', end.length - 4)
  if (magic === 'PARE') return unread(source, { reason: 'encrypted', why: 'Its footer is encrypted.' })
  if (magic !== 'PAR1') throw invalid(location, 'it does not end as a Parquet file does')
  const length = end.readUInt32LE(end.length - tailBytes)
  const start = size - tailBytes - length
  if (start < 4) throw invalid(location, `its footer would have ${length} of its ${size} bytes`)
  const footer =
    length + tailBytes <= end.length
      ? end.subarray(end.length - tailBytes - length, end.length - tailBytes)
      : await read(start, length)
  return parseFooter(source, footer, start)
}

function parseFooter({ location, size }: FooterSource, footer: Buffer, footerStart: number): WholeFooter {
  try {
    const metadata = ThriftStruct.parse(footer)
    const schema = metadata.structs(fileMetaData.schema) ?? []
    const leaves = leavesOf(schema)
    const rowCount = metadata.integer(fileMetaData.rowCount) ?? -1
    const groups = (metadata.structs(fileMetaData.rowGroups) ?? []).map(rowGroupOf)
    const file = { location, size, metadata, schema, leaves, rowCount, groups }
    return { ...file, unjoinable: obstacleIn(file) ?? faultOf(file, footerStart) }
  } catch (error) {
    if (error instanceof IcebergError) throw invalid(location, error.message, error)
    throw error
  }
}

type Parsed = Omit<WholeFooter, 'unjoinable'>

/** What the file has that cannot be copied, or not without looking closer. */
function obstacleIn({ metadata, groups }: Parsed): Unjoinable | undefined {
  if (metadata.has(fileMetaData.encryptionAlgorithm) || metadata.has(fileMetaData.footerSigningKey)) {
    return { reason: 'encrypted', why: 'Its columns are encrypted.' }
  }
  const chunks = groups.flatMap((group) => group.chunks)
  const { cryptoMetadata, encryptedMetadata, filePath } = columnChunk
  if (chunks.some(({ struct }) => struct.has(cryptoMetadata) || struct.has(encryptedMetadata))) {
    return { reason: 'encrypted', why: 'A column is encrypted.' }
  }
  const external = chunks.find(({ struct }) => struct.has(filePath))
  if (external !== undefined) {
    return { reason: 'external_chunks', why: `A column is in another file, "${external.struct.text(filePath)}".` }
  }
  const unknown =
    unknownField('FileMetaData', [metadata], lastKnownField.fileMetaData) ??
    unknownField('RowGroup', groups.map(structOf), lastKnownField.rowGroup) ??
    unknownField('ColumnChunk', chunks.map(structOf), lastKnownField.columnChunk) ??
    unknownField(
      'ColumnMetaData',
      chunks.map(({ metaData }) => metaData),
      lastKnownField.columnMetaData,
    )
  if (unknown === undefined) return undefined
  return { reason: 'unknown_feature', why: `Its footer has ${unknown}, which a copy might make untrue.` }
}

function structOf({ struct }: { struct: ThriftStruct }): ThriftStruct {
  return struct
}

function unknownField(name: string, structs: readonly ThriftStruct[], lastKnown: number): string | undefined {
  for (const { fields } of structs) {
    const unknown = fields.find(({ id }) => id < 1 || id > lastKnown)
    if (unknown !== undefined) return `the field ${unknown.id} of ${name}`
  }
  return undefined
}

function rowGroupOf(struct: ThriftStruct): RowGroup {
  const chunks = (struct.structs(rowGroup.columns) ?? []).map(chunkOf)
  return { struct, rowCount: struct.integer(rowGroup.rowCount) ?? -1, chunks }
}

function chunkOf(struct: ThriftStruct): Chunk {
  const metaData = struct.struct(columnChunk.metaData) ?? new ThriftStruct([])
  const data = metaData.integer(columnMetaData.dataPageOffset) ?? -1
  const dictionary = metaData.integer(columnMetaData.dictionaryPageOffset) ?? 0
  // Some writers give 0 for a dictionary that is not there.
  const offset = dictionary > 0 && dictionary < data ? dictionary : data
  const bloomFilter = metaData.integer(columnMetaData.bloomFilterOffset) ?? 0
  return {
    struct,
    metaData,
    pages: { offset, length: metaData.integer(columnMetaData.compressedSize) ?? -1 },
    valueCount: metaData.integer(columnMetaData.valueCount) ?? -1,
    nullCount: metaData.struct(columnMetaData.statistics)?.integer(statistics.nullCount),
    offsetIndex: indexAt(struct, columnChunk.offsetIndexOffset, columnChunk.offsetIndexLength),
    columnIndex: indexAt(struct, columnChunk.columnIndexOffset, columnChunk.columnIndexLength),
    bloomFilter:
      bloomFilter > 0 ? { offset: bloomFilter, length: metaData.integer(columnMetaData.bloomFilterLength) } : undefined,
  }
}

function indexAt(struct: ThriftStruct, offsetId: number, lengthId: number): ByteRange | undefined {
  const [offset, length] = [struct.integer(offsetId), struct.integer(lengthId)]
  return offset === undefined || length === undefined || length <= 0 ? undefined : { offset, length }
}

/** What is wrong with where the parts of a file are said to be. */
function faultOf(footer: Parsed, footerStart: number): Unjoinable | undefined {
  const damaged = (why: string): Unjoinable => ({ reason: 'damaged', why })
  const paths = footer.leaves.map(({ path }) => pathValue(path))
  const rows = footer.groups.reduce((sum, group) => sum + group.rowCount, 0)
  if (rows !== footer.rowCount) return damaged(`Its row groups have ${rows} rows, and it says ${footer.rowCount}.`)
  const isInFile = ({ offset, length }: ByteRange): boolean =>
    offset >= 4 && length >= 0 && offset + length <= footerStart
  for (const { chunks, rowCount } of footer.groups) {
    if (chunks.length !== paths.length) {
      return damaged(`A row group has ${chunks.length} columns, and its schema ${paths.length}.`)
    }
    for (const [index, chunk] of chunks.entries()) {
      const name = footer.leaves[index]?.path.join('.') ?? ''
      if (paths[index]?.equals(chunk.metaData.value(columnMetaData.path) ?? Buffer.alloc(0)) !== true) {
        return damaged(`Its columns are not in the order of its schema at ${name}.`)
      }
      if (rowCount === 0) continue
      if (!isInFile(chunk.pages) || chunk.pages.length === 0) {
        return damaged(`The pages of ${name} are not inside it.`)
      }
      for (const range of [chunk.offsetIndex, chunk.columnIndex]) {
        if (range !== undefined && !isInFile(range)) return damaged(`The page index of ${name} is not inside it.`)
      }
      const { bloomFilter } = chunk
      if (bloomFilter !== undefined && !isInFile({ offset: bloomFilter.offset, length: bloomFilter.length ?? 1 })) {
        return damaged(`The Bloom filter of ${name} is not inside it.`)
      }
      for (const id of pageOffsets) {
        const offset = chunk.metaData.integer(id) ?? 0
        if (offset > 0 && !isInside(chunk.pages, offset)) return damaged(`A page of ${name} is outside its column.`)
      }
    }
  }
  return oldWriter(footer.metadata.text(fileMetaData.createdBy) ?? '')
}

/** The fields of a column's metadata that say where one of its pages is. */
export const pageOffsets = [
  columnMetaData.dataPageOffset,
  columnMetaData.indexPageOffset,
  columnMetaData.dictionaryPageOffset,
] as const

export function isInside({ offset, length }: ByteRange, place: number): boolean {
  return place >= offset && place < offset + length
}

/** Before 1.2.9 parquet-mr did not count the header of the dictionary page in the size of a column. */
function oldWriter(createdBy: string): Unjoinable | undefined {
  const [, minor = 9, patch = 9] = /^parquet-mr version 1\.(\d+)\.(\d+)/.exec(createdBy)?.map(Number) ?? []
  if (minor > 2 || (minor === 2 && patch >= 9)) return undefined
  return { reason: 'old_writer', why: `It is by "${createdBy}", which gave wrong sizes of columns.` }
}

/** The columns that hold values, in their order. The root is not part of their paths. */
function leavesOf(schema: readonly ThriftStruct[]): Leaf[] {
  const leaves: Leaf[] = []
  const open: { path: readonly string[]; left: number }[] = []
  for (const [index, element] of schema.entries()) {
    const parent = open.at(-1)
    const path = index === 0 ? [] : [...(parent?.path ?? []), element.text(schemaElement.name) ?? '']
    if (parent !== undefined) parent.left -= 1
    const children = element.integer(schemaElement.children) ?? 0
    if (index > 0 && children === 0) leaves.push({ element, path })
    if (children > 0) open.push({ path, left: children })
    while (open.at(-1)?.left === 0) open.pop()
  }
  return leaves
}

/** A path as the metadata of a column has it. */
function pathValue(path: readonly string[]): Buffer {
  return binaryList(
    columnMetaData.path,
    path.map((name) => Buffer.from(name)),
  ).value
}

function unread({ location, size }: FooterSource, unjoinable: Unjoinable): WholeFooter {
  return {
    location,
    size,
    metadata: new ThriftStruct([]),
    schema: [],
    leaves: [],
    rowCount: 0,
    groups: [],
    unjoinable,
  }
}

function invalid(location: string, why: string, cause?: unknown): IcebergError {
  return new IcebergError('parquet_invalid', `${location} cannot be read as Parquet: ${why}.`, {
    details: { location },
    ...(cause === undefined ? {} : { cause }),
  })
}
