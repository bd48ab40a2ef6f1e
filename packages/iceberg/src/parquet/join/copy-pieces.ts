import { crc32 } from 'node:zlib'
import { IcebergError } from '../../errors.ts'
import { partsOf } from '../../storage/each.ts'
import { mapOrdered } from '../../storage/ordered.ts'
import type { ByteRange, Storage } from '../../storage/storage.ts'
import { eachWithin } from '../../storage/within.ts'
import { lengthOf, type Piece } from './layout.ts'

// Bytes are read in large ranges, some of them ahead, while earlier ones are written. A range may cover many pieces: the
// columns of a row group, and often its row groups, follow each other in the input as they do in the output.

const readBytes = 8 * 1024 * 1024
const readsAhead = 3

interface Read {
  readonly location: string
  readonly range: ByteRange
}

/** The CRC-32 of each piece, by its place. */
export type Checksums = number[]

/** The content of the output. The checksum of each piece, as it was read, is set once it has gone by. */
export async function* copiedPieces(
  storage: Storage,
  pieces: readonly Piece[],
  checksums: Checksums,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const checked = new PieceChecksums(pieces, checksums)
  for await (const bytes of inOrder(storage, readsOf(pieces), signal)) {
    checked.update(bytes)
    yield bytes
  }
}

/** Reads a written file again; fails at the first piece that is not what was written. */
export async function verifyPieces(
  storage: Storage,
  location: string,
  pieces: readonly Piece[],
  written: Checksums,
  signal: AbortSignal | undefined,
): Promise<void> {
  const size = pieces.reduce((sum, piece) => sum + lengthOf(piece), 0)
  const found = await storage.size(location, { signal })
  if (found !== size) throw different(location, `it has ${found} bytes and not ${size}`)
  const again: Checksums = []
  const checked = new PieceChecksums(pieces, again)
  const reads = partsOf(0, size, readBytes).map((range) => ({ location, range }))
  for await (const bytes of inOrder(storage, reads, signal)) checked.update(bytes)
  for (const [index, piece] of pieces.entries()) {
    if (again[index] === written[index]) continue
    const what = 'from' in piece && piece.pagesOf !== undefined ? `column ${piece.pagesOf.column}` : 'its metadata'
    throw different(location, `${what} was written with the CRC ${written[index]} and is read with ${again[index]}`)
  }
}

function different(location: string, why: string): IcebergError {
  return new IcebergError('storage_failed', `${location} is not what was written: ${why}. It is removed; try again.`, {
    details: { location },
  })
}

/** Reads that give the pieces one after another, as few as can be. */
function* readsOf(pieces: readonly Piece[]): Generator<Read | Uint8Array> {
  let run: { location: string; offset: number; length: number } | undefined
  for (const piece of pieces) {
    if ('bytes' in piece) {
      if (run !== undefined) yield* cutRun(run)
      run = undefined
      yield piece.bytes
      continue
    }
    const { from, range } = piece
    if (run?.location === from.location && run.offset + run.length === range.offset) {
      run.length += range.length
      continue
    }
    if (run !== undefined) yield* cutRun(run)
    run = { location: from.location, ...range }
  }
  if (run !== undefined) yield* cutRun(run)
}

function cutRun({ location, offset, length }: { location: string } & ByteRange): Read[] {
  return partsOf(offset, length, readBytes).map((range) => ({ location, range }))
}

/** What was asked for, in that order, with the next ones already under way. */
function inOrder(
  storage: Storage,
  reads: Iterable<Read | Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const bytesOf = async (read: Read | Uint8Array): Promise<Uint8Array> =>
    read instanceof Uint8Array ? read : await storage.read(read.location, read.range, { signal })
  return eachWithin(signal, mapOrdered(reads, readsAhead, bytesOf))
}

class PieceChecksums {
  readonly #pieces: readonly Piece[]
  readonly #checksums: Checksums
  #at = 0
  #left: number

  constructor(pieces: readonly Piece[], checksums: Checksums) {
    this.#pieces = pieces
    this.#checksums = checksums
    this.#left = this.#lengthAt(0)
  }

  /** The next bytes: they may end in the middle of a piece, and cover several. */
  update(bytes: Uint8Array): void {
    for (let from = 0; from < bytes.length;) {
      const taken = bytes.subarray(from, from + this.#left)
      this.#checksums[this.#at] = crc32(taken, this.#checksums[this.#at] ?? 0)
      from += taken.length
      this.#left -= taken.length
      while (this.#left === 0 && this.#at < this.#pieces.length) {
        this.#at += 1
        this.#left = this.#lengthAt(this.#at)
      }
      if (taken.length === 0) throw new IcebergError('storage_failed', 'More bytes came than were asked for.')
    }
  }

  #lengthAt(index: number): number {
    const piece = this.#pieces[index]
    return piece === undefined ? 0 : lengthOf(piece)
  }
}
