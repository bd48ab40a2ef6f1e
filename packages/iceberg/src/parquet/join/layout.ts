import { IcebergError } from '../../errors.ts'
import type { ByteRange } from '../../storage/storage.ts'
import { i16, i32, i64, structField, structList, ThriftStruct, type ThriftField } from '../thrift-compact.ts'
import { joinedFooter } from './joined-footer.ts'
import { lineageChunk, lineageColumns, type LineageChunk } from './lineage-chunk.ts'
import { movedOffsetIndex } from './offset-index.ts'
import { columnChunk, columnMetaData, rowGroup } from './parquet-fields.ts'
import { isInside, pageOffsets, type Chunk, type RowGroup, type WholeFooter } from './whole-footer.ts'

// The whole of a joined file is known before a byte of it is copied: the sizes of what is copied are in the footers of
// the inputs, and everything else is small. Row groups come first, one after another; then Bloom filters, column
// indexes, offset indexes; then the footer.

/** A file to be joined, with what was read of it beside its footer. */
export interface LayoutInput {
  readonly footer: WholeFooter
  /** The offset indexes of its columns. */
  readonly offsetIndexes: ReadonlyMap<Chunk, Uint8Array>
  /** Where its Bloom filters are, all lengths known. */
  readonly bloomFilters: ReadonlyMap<Chunk, ByteRange>
  /** Row ids and sequence number, of a file that does not hold them, where they are wanted. */
  readonly lineage: { readonly firstRowId: bigint; readonly sequenceNumber: bigint } | undefined
}

/** The next bytes of the output: copied from an input, or given. */
export type Piece =
  | {
      readonly from: WholeFooter
      readonly range: ByteRange
      /** Which column of which row group of the output these are the pages of. */
      readonly pagesOf?: { readonly rowGroup: number; readonly column: string; readonly values: number }
    }
  | { readonly bytes: Uint8Array }

export interface Layout {
  readonly pieces: readonly Piece[]
  readonly size: number
  readonly rowCount: number
  /** Where each row group begins. */
  readonly splitOffsets: readonly number[]
}

const magic = Buffer.from('PAR1')
/** The ordinal of a row group has 16 bits. */
export const maxRowGroups = 32_768

interface DraftChunk {
  struct: ThriftStruct
  readonly bloomFilter: Piece | undefined
  readonly columnIndex: Piece | undefined
  readonly offsetIndex: Piece | undefined
}

interface DraftGroup {
  readonly struct: ThriftStruct
  readonly chunks: readonly DraftChunk[]
}

/** Says, piece by piece, what the joined file consists of. */
export function layoutOf(inputs: readonly LayoutInput[]): Layout {
  const groupCount = inputs.reduce((sum, { footer }) => sum + footer.groups.length, 0)
  if (groupCount > maxRowGroups) {
    throw new IcebergError('parquet_invalid', `${groupCount} row groups are more than a file can number.`)
  }
  const output = new Output()
  const groups: DraftGroup[] = []
  const splitOffsets: number[] = []
  output.append({ bytes: magic })
  for (const input of inputs) {
    let firstRow = 0
    for (const group of input.footer.groups) {
      if (group.rowCount === 0) continue // some writers end a file so
      splitOffsets.push(output.size)
      groups.push(appendGroup(output, { input, group, firstRow, ordinal: groups.length }))
      firstRow += group.rowCount
    }
  }
  const chunks = groups.flatMap((group) => group.chunks)
  for (const chunk of chunks) appendBloomFilter(output, chunk)
  for (const chunk of chunks) {
    appendIndex(output, chunk, chunk.columnIndex, columnChunk.columnIndexOffset, columnChunk.columnIndexLength)
  }
  for (const chunk of chunks) {
    appendIndex(output, chunk, chunk.offsetIndex, columnChunk.offsetIndexOffset, columnChunk.offsetIndexLength)
  }
  const footer = joinedFooter(
    inputs,
    groups.map(({ struct, chunks: columns }) =>
      struct.with(
        structList(
          rowGroup.columns,
          columns.map((chunk) => chunk.struct),
        ),
      ),
    ),
  ).encode()
  const length = Buffer.alloc(4)
  length.writeUInt32LE(footer.length)
  output.append({ bytes: Buffer.concat([footer, length, magic]) })
  const rowCount = inputs.reduce((sum, input) => sum + input.footer.rowCount, 0)
  return { pieces: output.pieces, size: output.size, rowCount, splitOffsets }
}

class Output {
  readonly pieces: Piece[] = []
  size = 0

  /** Returns where the piece begins. */
  append(piece: Piece): number {
    const start = this.size
    this.pieces.push(piece)
    this.size += lengthOf(piece)
    return start
  }
}

export function lengthOf(piece: Piece): number {
  return 'bytes' in piece ? piece.bytes.length : piece.range.length
}

function appendGroup(
  output: Output,
  { input, group, firstRow, ordinal }: { input: LayoutInput; group: RowGroup; firstRow: number; ordinal: number },
): DraftGroup {
  const start = output.size
  const chunks = group.chunks.map((chunk, index): DraftChunk => {
    const column = input.footer.leaves[index]?.path.join('.') ?? ''
    const pagesOf = { rowGroup: ordinal, column, values: chunk.valueCount }
    const to = output.append({ from: input.footer, range: chunk.pages, pagesOf })
    return movedChunk(input, chunk, to)
  })
  const hasIndexes = group.chunks.every((chunk) => input.offsetIndexes.has(chunk))
  const made = input.lineage === undefined ? [] : appendLineage(output, input.lineage, firstRow, group.rowCount)
  const madeBytes = made.reduce((sum, { bytes }) => sum + bytes.length, 0)
  const struct = group.struct.with(
    i64(rowGroup.totalByteSize, (group.struct.integer(rowGroup.totalByteSize) ?? 0) + madeBytes),
    i64(rowGroup.fileOffset, start),
    i64(rowGroup.compressedSize, output.size - start),
    i16(rowGroup.ordinal, ordinal),
  )
  return { struct, chunks: [...chunks, ...made.map((chunk) => madeChunk(chunk, hasIndexes))] }
}

/** A copied column: every place in its metadata moves by as much as its pages do. */
function movedChunk(input: LayoutInput, chunk: Chunk, to: number): DraftChunk {
  const { pages, metaData, struct } = chunk
  const moved: ThriftField[] = []
  for (const id of pageOffsets) {
    const offset = metaData.integer(id) ?? 0
    if (offset > 0) moved.push(i64(id, offset - pages.offset + to))
  }
  const { bloomFilterOffset, bloomFilterLength } = columnMetaData
  const place = struct.integer(columnChunk.fileOffset) ?? 0
  const index = input.offsetIndexes.get(chunk)
  const bloomFilter = input.bloomFilters.get(chunk)
  return {
    struct: struct
      .without(
        columnChunk.offsetIndexOffset,
        columnChunk.offsetIndexLength,
        columnChunk.columnIndexOffset,
        columnChunk.columnIndexLength,
      )
      .with(
        // Deprecated, 0 in new files. Old writers had the place of a second copy of the metadata here.
        i64(columnChunk.fileOffset, isInside(pages, place) ? place - pages.offset + to : 0),
        structField(columnChunk.metaData, metaData.without(bloomFilterOffset, bloomFilterLength).with(...moved)),
      ),
    bloomFilter: bloomFilter && { from: input.footer, range: bloomFilter },
    columnIndex: chunk.columnIndex && { from: input.footer, range: chunk.columnIndex },
    offsetIndex: index && { bytes: movedOffsetIndex(index, pages, to) },
  }
}

function appendLineage(
  output: Output,
  { firstRowId, sequenceNumber }: { firstRowId: bigint; sequenceNumber: bigint },
  firstRow: number,
  rowCount: number,
): LineageChunk[] {
  const firsts = [firstRowId + BigInt(firstRow), sequenceNumber]
  return lineageColumns.map((column, index) => {
    const chunk = lineageChunk(column, firsts[index] ?? 0n, rowCount, output.size)
    output.append({ bytes: chunk.bytes })
    return chunk
  })
}

function madeChunk(chunk: LineageChunk, hasIndexes: boolean): DraftChunk {
  return {
    struct: chunk.struct,
    bloomFilter: undefined,
    // A reader that goes by pages needs the index of every column it reads, or of none.
    columnIndex: hasIndexes ? { bytes: chunk.columnIndex } : undefined,
    offsetIndex: hasIndexes ? { bytes: chunk.offsetIndex } : undefined,
  }
}

function appendBloomFilter(output: Output, chunk: DraftChunk): void {
  if (chunk.bloomFilter === undefined) return
  const metaData = chunk.struct.struct(columnChunk.metaData) ?? new ThriftStruct([])
  const placed = metaData.with(
    i64(columnMetaData.bloomFilterOffset, output.append(chunk.bloomFilter)),
    i32(columnMetaData.bloomFilterLength, lengthOf(chunk.bloomFilter)),
  )
  chunk.struct = chunk.struct.with(structField(columnChunk.metaData, placed))
}

function appendIndex(
  output: Output,
  chunk: DraftChunk,
  index: Piece | undefined,
  offsetId: number,
  lengthId: number,
): void {
  if (index === undefined) return
  chunk.struct = chunk.struct.with(i64(offsetId, output.append(index)), i32(lengthId, lengthOf(index)))
}
