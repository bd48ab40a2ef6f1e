import { AvroReader } from '../avro/avro-reader.ts'
import { AvroWriter } from '../avro/avro-writer.ts'
import type { ContentFile, PartitionValues } from '../manifests/content-file.ts'
import { deletePathId, onlyPath, type Delete } from './delete.ts'

// A snapshot may have millions of deletes, and all of them are known before the first data file is. As objects they take
// two kilobytes each; here they are encoded, one after another, in pieces of a megabyte. Of statistics only the bounds
// of paths are kept.

const pieceBytes = 1024 * 1024
/** Folders that are kept once for all files in them. Tables that spread their files have one for each file. */
const maxFolders = 10_000

const contents = ['data', 'position-deletes', 'equality-deletes'] as const
// What a delete is for: any file of its partition, the one that it names, or the one whose path is both its bounds.
const [forMany, forNamedPath, forPathInBounds] = [0, 1, 2]

/** The partition of a spec: kept once for all deletes of it. */
export interface DeletePartition {
  readonly specId: number
  readonly values: PartitionValues
}

/** Deletes by the numbers they were added with, from 0, each with the number of another one: they form chains. */
export class KeptDeletes {
  readonly #pieces: Buffer[] = [Buffer.allocUnsafe(pieceBytes)]
  #used = 0
  readonly #writer = new AvroWriter()
  #starts = new Float64Array(64)
  #sequenceNumbers = new BigInt64Array(64)
  /** The number of the next one in the chain, plus one; 0 ends it. */
  #next = new Int32Array(64)
  #count = 0
  readonly #partitions: DeletePartition[] = []
  readonly #partitionNumbers = new Map<DeletePartition, number>()
  readonly #folders: string[] = ['']
  readonly #folderNumbers = new Map<string, number>()
  readonly #formats: string[] = []

  add({ file, sequenceNumber }: Delete, partition: DeletePartition, next?: number): number {
    const number = this.#count
    if (number === this.#starts.length) this.#grow()
    this.#writer.clear()
    this.#encode(file, partition)
    this.#starts[number] = this.#append(this.#writer.written)
    this.#sequenceNumbers[number] = sequenceNumber
    this.#next[number] = next === undefined ? 0 : next + 1
    this.#count += 1
    return number
  }

  sequenceNumber(number: number): bigint {
    return this.#sequenceNumbers[number] ?? 0n
  }

  next(number: number): number | undefined {
    const next = this.#next[number] ?? 0
    return next === 0 ? undefined : next - 1
  }

  get(number: number): Delete {
    return { file: this.#decode(this.#reader(number)), sequenceNumber: this.sequenceNumber(number) }
  }

  /** The one data file that it is for. */
  onlyPath(number: number): string {
    const reader = this.#reader(number)
    return reader.number() === forMany ? '' : this.#readPath(reader)
  }

  /** Whether its bounds allow this path. A cut lower bound is still a lower bound, and a cut upper bound was made larger. */
  mayName(number: number, path: Uint8Array): boolean {
    const reader = this.#reader(number)
    if (reader.number() !== forMany) return true
    const lower = readOptional(reader, () => reader.bytes())
    if (lower !== undefined && Buffer.compare(lower, path) > 0) return false
    const upper = readOptional(reader, () => reader.bytes())
    return upper === undefined || Buffer.compare(upper, path) >= 0
  }

  #reader(number: number): AvroReader {
    const start = this.#starts[number] ?? 0
    const piece = this.#pieces[Math.floor(start / pieceBytes)] ?? Buffer.alloc(0)
    return new AvroReader(piece, start % pieceBytes)
  }

  /** The path it is for, or the bounds of paths, come first: they are read alone. */
  #encode(file: ContentFile, partition: DeletePartition): void {
    const w = this.#writer
    const only = file.content === 'equality-deletes' ? undefined : onlyPath(file)
    w.number(only === undefined ? forMany : file.referencedDataFile === undefined ? forPathInBounds : forNamedPath)
    if (only !== undefined) this.#writePath(only)
    else {
      w.optional(file.lowerBounds?.get(deletePathId), (bound) => w.byteString(bound))
      w.optional(file.upperBounds?.get(deletePathId), (bound) => w.byteString(bound))
    }
    w.number(contents.indexOf(file.content))
    w.number(numberOf(this.#formats, file.fileFormat))
    this.#writePath(file.filePath)
    w.number(this.#partitionNumber(partition))
    w.number(file.recordCount)
    w.number(file.fileSizeInBytes)
    w.list(file.equalityIds ?? [], (id) => w.number(id))
    w.optional(file.contentOffset, (offset) => w.number(offset))
    w.optional(file.contentSizeInBytes, (size) => w.number(size))
  }

  #decode(r: AvroReader): ContentFile {
    const reach = r.number()
    const only = reach === forMany ? undefined : this.#readPath(r)
    const inBounds = reach === forPathInBounds ? Buffer.from(only ?? '') : undefined
    const lower = reach === forMany ? readOptional(r, () => r.bytes()) : inBounds
    const upper = reach === forMany ? readOptional(r, () => r.bytes()) : inBounds
    const content = contents[r.number()] ?? 'position-deletes'
    const fileFormat = this.#formats[r.number()] ?? ''
    const filePath = this.#readPath(r)
    const { specId, values: partition } = this.#partitions[r.number()] ?? { specId: -1, values: [] }
    const [recordCount, fileSizeInBytes] = [r.number(), r.number()]
    const equalityIds = readNumbers(r)
    const contentOffset = readOptional(r, () => r.number())
    const contentSizeInBytes = readOptional(r, () => r.number())
    return {
      content,
      filePath,
      fileFormat,
      specId,
      partition,
      recordCount,
      fileSizeInBytes,
      lowerBounds: lower === undefined ? undefined : new Map([[deletePathId, lower]]),
      upperBounds: upper === undefined ? undefined : new Map([[deletePathId, upper]]),
      equalityIds: equalityIds.length === 0 ? undefined : equalityIds,
      referencedDataFile: reach === forNamedPath ? only : undefined,
      contentOffset,
      contentSizeInBytes,
    }
  }

  #writePath(path: string): void {
    const end = path.lastIndexOf('/') + 1
    const folder = this.#folderNumber(path.slice(0, end))
    this.#writer.number(folder)
    this.#writer.string(folder === 0 ? path : path.slice(end))
  }

  #readPath(reader: AvroReader): string {
    const folder = this.#folders[reader.number()] ?? ''
    return folder + reader.string()
  }

  /** 0 when there are too many: the path is then kept whole. */
  #folderNumber(folder: string): number {
    const known = this.#folderNumbers.get(folder)
    if (known !== undefined) return known
    if (this.#folders.length > maxFolders) return 0
    this.#folderNumbers.set(folder, this.#folders.length)
    return this.#folders.push(folder) - 1
  }

  #partitionNumber(partition: DeletePartition): number {
    const known = this.#partitionNumbers.get(partition)
    if (known !== undefined) return known
    this.#partitionNumbers.set(partition, this.#partitions.length)
    return this.#partitions.push(partition) - 1
  }

  /** Where the bytes begin. A piece is never left in the middle of a record; one that is larger gets its own. */
  #append(bytes: Buffer): number {
    if (this.#used + bytes.length > (this.#pieces.at(-1)?.length ?? 0)) {
      this.#pieces.push(Buffer.allocUnsafe(Math.max(pieceBytes, bytes.length)))
      this.#used = 0
    }
    this.#pieces.at(-1)?.set(bytes, this.#used)
    const start = (this.#pieces.length - 1) * pieceBytes + this.#used
    this.#used += bytes.length
    return start
  }

  #grow(): void {
    const length = Math.ceil(this.#count * 1.5)
    const [starts, sequenceNumbers, next] = [this.#starts, this.#sequenceNumbers, this.#next]
    this.#starts = new Float64Array(length)
    this.#starts.set(starts)
    this.#sequenceNumbers = new BigInt64Array(length)
    this.#sequenceNumbers.set(sequenceNumbers)
    this.#next = new Int32Array(length)
    this.#next.set(next)
  }
}

function readOptional<T>(reader: AvroReader, read: () => T): T | undefined {
  return reader.number() === 0 ? undefined : read()
}

function readNumbers(reader: AvroReader): number[] {
  const numbers: number[] = []
  for (let count = reader.number(); count > 0; count = reader.number()) {
    for (let i = 0; i < count; i += 1) numbers.push(reader.number())
  }
  return numbers
}

function numberOf(texts: string[], text: string): number {
  const known = texts.indexOf(text)
  return known === -1 ? texts.push(text) - 1 : known
}
