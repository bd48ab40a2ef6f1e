import {
  binary,
  binaryList,
  booleanList,
  i32,
  i32List,
  i64,
  i64List,
  structField,
  structList,
  ThriftStruct,
  varintBytes,
  zigzagBytes,
} from '../thrift-compact.ts'
import {
  columnChunk,
  columnMetaData,
  int64,
  offsetIndex,
  pageLocation,
  repetition,
  schemaElement,
  statistics,
} from './parquet-fields.ts'

// The row ids of a file's rows follow each other, and their sequence number is one: both are written as
// DELTA_BINARY_PACKED, a first value and a difference that never changes, so that the packed rest has no width at all.
// A page of 20,000 rows, which is what parquet-mr makes, takes about 850 bytes.

const pageRows = 20_000
const deltaBinaryPacked = 5
const rle = 3
const dataPage = 0
const uncompressed = 0

export const lineageColumns = [
  { name: '_row_id', fieldId: 2147483540, step: 1n },
  { name: '_last_updated_sequence_number', fieldId: 2147483539, step: 0n },
] as const

export type LineageColumn = (typeof lineageColumns)[number]

/** The column in the schema of a file: an optional long. */
export function lineageElement({ name, fieldId }: LineageColumn): ThriftStruct {
  return new ThriftStruct([
    i32(schemaElement.type, int64),
    i32(schemaElement.repetition, repetition.optional),
    binary(schemaElement.name, Buffer.from(name)),
    i32(schemaElement.fieldId, fieldId),
  ])
}

/** A column of a row group, made and not copied. */
export interface LineageChunk {
  readonly bytes: Buffer
  readonly struct: ThriftStruct
  readonly columnIndex: Buffer
  readonly offsetIndex: Buffer
}

/** The values `first`, `first + step`, … of `rowCount` rows, none of them null, to stand at `offset` of a file. */
export function lineageChunk(column: LineageColumn, first: bigint, rowCount: number, offset: number): LineageChunk {
  const pages: { bytes: Buffer; firstRow: number; first: bigint; last: bigint }[] = []
  for (let firstRow = 0; firstRow < rowCount; firstRow += pageRows) {
    const rows = Math.min(pageRows, rowCount - firstRow)
    const start = first + column.step * BigInt(firstRow)
    const last = start + column.step * BigInt(rows - 1)
    pages.push({ bytes: page(start, column.step, rows), firstRow, first: start, last })
  }
  const bytes = Buffer.concat(pages.map((each) => each.bytes))
  let at = offset
  const locations = pages.map(({ bytes: { length }, firstRow }) => {
    const location = [
      i64(pageLocation.offset, at),
      i32(pageLocation.compressedSize, length),
      i64(pageLocation.firstRow, firstRow),
    ]
    at += length
    return new ThriftStruct(location)
  })
  const last = pages.at(-1)?.last ?? first
  return {
    bytes,
    struct: chunkStruct(column, { first, last, rowCount, offset, size: bytes.length, pageCount: pages.length }),
    columnIndex: new ThriftStruct([
      booleanList(1, pages.map(isNullPage)),
      binaryList(
        2,
        pages.map((each) => longBytes(each.first)),
      ),
      binaryList(
        3,
        pages.map((each) => longBytes(each.last)),
      ),
      i32(4, ascending),
      i64List(
        5,
        pages.map(() => 0),
      ),
    ]).encode(),
    offsetIndex: new ThriftStruct([structList(offsetIndex.pages, locations)]).encode(),
  }
}

const ascending = 1
const isNullPage = (): boolean => false

function chunkStruct(
  { name }: LineageColumn,
  chunk: { first: bigint; last: bigint; rowCount: number; offset: number; size: number; pageCount: number },
): ThriftStruct {
  const stats = new ThriftStruct([
    i64(statistics.nullCount, 0),
    binary(statistics.maxValue, longBytes(chunk.last)),
    binary(statistics.minValue, longBytes(chunk.first)),
  ])
  const pageEncoding = new ThriftStruct([i32(1, dataPage), i32(2, deltaBinaryPacked), i32(3, chunk.pageCount)])
  const metaData = new ThriftStruct([
    i32(columnMetaData.type, int64),
    i32List(columnMetaData.encodings, [rle, deltaBinaryPacked]),
    binaryList(columnMetaData.path, [Buffer.from(name)]),
    i32(columnMetaData.codec, uncompressed),
    i64(columnMetaData.valueCount, chunk.rowCount),
    i64(columnMetaData.uncompressedSize, chunk.size),
    i64(columnMetaData.compressedSize, chunk.size),
    i64(columnMetaData.dataPageOffset, chunk.offset),
    structField(columnMetaData.statistics, stats),
    structList(columnMetaData.encodingStats, [pageEncoding]),
  ])
  return new ThriftStruct([i64(columnChunk.fileOffset, 0), structField(columnChunk.metaData, metaData)])
}

/** A data page of version 1: its header, the levels that say that no value is null, the values. */
function page(first: bigint, step: bigint, rows: number): Buffer {
  const levels = Buffer.concat([varintBytes(rows * 2), Buffer.of(1)]) // one run of ones
  const levelsLength = Buffer.alloc(4)
  levelsLength.writeUInt32LE(levels.length)
  const content = Buffer.concat([levelsLength, levels, deltas(first, step, rows)])
  const dataPageHeader = new ThriftStruct([i32(1, rows), i32(2, deltaBinaryPacked), i32(3, rle), i32(4, rle)])
  const header = new ThriftStruct([
    i32(1, dataPage),
    i32(2, content.length),
    i32(3, content.length),
    structField(5, dataPageHeader),
  ])
  return Buffer.concat([header.encode(), content])
}

// The sizes that other writers use. Larger blocks would be smaller still, but arrow-rs cannot skip within a miniblock of
// more than 64 values.
const blockValues = 128
const miniblocks = 4

/** The first value is in the header; every block after it says the difference, and a width of 0 for each miniblock. */
function deltas(first: bigint, step: bigint, rows: number): Buffer {
  const header = [varintBytes(blockValues), varintBytes(miniblocks), varintBytes(rows), zigzagBytes(first)]
  const block = Buffer.concat([zigzagBytes(step), Buffer.alloc(miniblocks)])
  const blocks = Math.ceil((rows - 1) / blockValues)
  return Buffer.concat([...header, ...Array.from({ length: blocks }, () => block)])
}

function longBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes
}
