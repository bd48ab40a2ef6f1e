import { IcebergError } from '../../errors.ts'
import { fieldsById } from '../../schema/schema.ts'
import type { SortOrder } from '../../schema/sort-order.ts'
import type { Field } from '../../schema/type.ts'
import { forEachLimited } from '../../storage/each.ts'
import type { ByteRange, Storage } from '../../storage/storage.ts'
import type { FileMetrics } from '../file-metrics.ts'
import { ThriftStruct } from '../thrift-compact.ts'
import { copiedPieces, verifyPieces, type Checksums } from './copy-pieces.ts'
import { joinedSortOrder } from './joined-sort-order.ts'
import { lacksLineage, likenessOf, obstacleOf, type JoinInput } from './joinable.ts'
import { layoutOf, lengthOf, type LayoutInput, type Piece } from './layout.ts'
import { mergedMetrics } from './merged-metrics.ts'
import { bloomFilterHeader } from './parquet-fields.ts'
import { readRanges } from './read-ranges.ts'
import type { Chunk } from './whole-footer.ts'

// Joins Parquet files without decoding them: the pages of every column are copied, row group after row group, and a new
// footer says where they are now. Nothing is compressed, encoded or compared, so it is exact for every type, also for
// those that no reader here knows.

export interface JoinFilesOptions {
  /** Files of one set of `joinable`, in the order in which their rows are to stand. */
  readonly inputs: readonly JoinInput[]
  /** Where the joined file is written: a name that nobody else uses. */
  readonly output: string
  readonly storage: Storage
  /** Of the table: the types by which bounds are compared. */
  readonly schema: { readonly fields: readonly Field[] }
  readonly sortOrders?: readonly SortOrder[]
  /** Whether row ids and sequence numbers of rows are to be kept in the file, as on tables of v3. Default false. */
  readonly lineage?: boolean
  /** Whether the written file is read once more and compared with what was read. Default true. */
  readonly readBack?: boolean
  readonly signal?: AbortSignal
}

/** What is known of one copied column of one row group. */
export interface CopiedChunk {
  readonly source: string
  readonly sourceOffset: number
  readonly offset: number
  readonly bytes: number
  readonly rowGroup: number
  readonly column: string
  /** Nulls included. */
  readonly values: number
  /** CRC-32 of the bytes as they were read, and, unless `readBack` is false, as they were read from the output. */
  readonly crc: number
}

/** What a manifest keeps of the joined file, and the proof that it holds what its inputs hold. */
export interface JoinedFile extends FileMetrics {
  readonly location: string
  readonly sortOrderId: number
  readonly chunks: readonly CopiedChunk[]
  readonly isReadBack: boolean
  readonly bytesRead: number
}

/** Writes one file with the rows of all inputs, in their order. When it fails, nothing is left of the file. */
export async function joinFiles(options: JoinFilesOptions): Promise<JoinedFile> {
  const { inputs, output, storage, readBack = true, lineage = false, signal } = options
  assertAlike(inputs, lineage)
  if (inputs.some(({ footer }) => footer.location === output)) {
    throw new IcebergError('location_invalid', `${output} is one of the files to be joined: give another name.`)
  }
  const prepared = new Map<JoinInput, LayoutInput>()
  await forEachLimited(inputs, 8, async (input) => {
    prepared.set(input, await prepare(storage, input, lineage, signal))
  })
  const { pieces, size, rowCount, splitOffsets } = layoutOf(inputs.flatMap((input) => prepared.get(input) ?? []))
  const checksums: Checksums = []
  signal?.throwIfAborted()
  try {
    await storage.write(output, copiedPieces(storage, pieces, checksums, signal), { signal })
    if (readBack) await verifyPieces(storage, output, pieces, checksums, signal)
  } catch (error) {
    // The name is this file's alone, so what is there is what was just written, whole or not.
    await storage.delete([output]).catch(() => {})
    throw error
  }
  const files = inputs.map(({ entry }) => entry.file)
  const fields = fieldsById(options.schema)
  return {
    location: output,
    recordCount: rowCount,
    fileSizeInBytes: size,
    splitOffsets,
    ...mergedMetrics(files, fields),
    sortOrderId: joinedSortOrder(files, options.sortOrders ?? [], fields),
    chunks: copiedChunks(pieces, checksums),
    isReadBack: readBack,
    bytesRead: pieces.reduce((sum, piece) => sum + ('from' in piece ? lengthOf(piece) : 0), readBack ? size : 0),
  }
}

function assertAlike(inputs: readonly JoinInput[], lineage: boolean): void {
  const [first] = inputs
  if (first === undefined) throw new IcebergError('parquet_invalid', 'No files were given to be joined.')
  const likeness = likenessOf(first, lineage)
  for (const input of inputs) {
    const { location } = input.footer
    const obstacle = obstacleOf(input, { minRowGroupBytes: 0, lineage })
    const why =
      obstacle?.why ?? (likenessOf(input, lineage) === likeness ? undefined : `It is unlike ${first.footer.location}.`)
    if (why === undefined) continue
    throw new IcebergError(
      'parquet_invalid',
      `${location} cannot be joined by its bytes: ${why} Ask \`joinable\` first.`,
      {
        details: { location, reason: obstacle?.reason ?? 'alone' },
      },
    )
  }
}

/** Reads what is neither in the footer nor copied as it is. */
async function prepare(
  storage: Storage,
  input: JoinInput,
  lineage: boolean,
  signal: AbortSignal | undefined,
): Promise<LayoutInput> {
  signal?.throwIfAborted()
  const { footer, entry } = input
  const { file, sequenceNumber } = entry
  const chunks = footer.groups.flatMap((group) => group.chunks)
  const { firstRowId } = file
  return {
    footer,
    offsetIndexes: await readRanges(
      { storage, location: footer.location, signal },
      chunks,
      (chunk) => chunk.offsetIndex,
    ),
    bloomFilters: await bloomFilters(storage, input, chunks, signal),
    lineage: lineage && firstRowId !== undefined && lacksLineage(input) ? { firstRowId, sequenceNumber } : undefined,
  }
}

/** More than any header of a Bloom filter takes. */
const bloomHeaderBytes = 64

/** Old writers do not say how long a Bloom filter is; its header does. */
async function bloomFilters(
  storage: Storage,
  { footer: { location, size } }: JoinInput,
  chunks: readonly Chunk[],
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<Chunk, ByteRange>> {
  const filters = new Map<Chunk, ByteRange>()
  const headers = await readRanges({ storage, location, signal }, chunks, ({ bloomFilter }) =>
    bloomFilter === undefined || bloomFilter.length !== undefined
      ? undefined
      : { offset: bloomFilter.offset, length: Math.min(bloomHeaderBytes, size - bloomFilter.offset) },
  )
  for (const chunk of chunks) {
    const { bloomFilter } = chunk
    if (bloomFilter === undefined) continue
    const { offset, length } = bloomFilter
    filters.set(chunk, { offset, length: length ?? filterLength(headers.get(chunk) ?? new Uint8Array()) })
  }
  return filters
}

function filterLength(header: Uint8Array): number {
  const { struct, length } = ThriftStruct.parsePrefix(header)
  return length + (struct.integer(bloomFilterHeader.bytes) ?? 0)
}

function copiedChunks(pieces: readonly Piece[], checksums: Checksums): CopiedChunk[] {
  const chunks: CopiedChunk[] = []
  let offset = 0
  for (const [index, piece] of pieces.entries()) {
    if ('from' in piece && piece.pagesOf !== undefined) {
      chunks.push({
        source: piece.from.location,
        sourceOffset: piece.range.offset,
        offset,
        bytes: piece.range.length,
        ...piece.pagesOf,
        crc: checksums[index] ?? 0,
      })
    }
    offset += lengthOf(piece)
  }
  return chunks
}
