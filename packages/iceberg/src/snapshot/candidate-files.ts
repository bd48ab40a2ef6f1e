import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as otherWork } from 'node:timers/promises'
import { temporaryFolder } from '../storage/temporary-folder.ts'

// Files that may be deleted, and which of them are in use. Each is known by a hash of 64 bits, in 12 to 40 bytes; the
// paths themselves are written one after the other, to disk once they take more memory than they may, and are read only
// in that order. Two paths of the same hash are one: the second is not a candidate, and one that is in use keeps the
// other. So a collision can only keep a file, never delete one.

const kinds = [
  'data',
  'position-deletes',
  'equality-deletes',
  'manifest',
  'manifest-list',
  'statistics',
  'partition-statistics',
  'metadata',
  'other',
] as const
export type FileKind = (typeof kinds)[number]

export interface CandidateFile {
  readonly path: string
  readonly kind: FileKind
  /** Of a manifest of old tables it is not known: 0. */
  readonly bytes: number
  /** Only of files that were listed; else 0. */
  readonly modifiedAtMs: number
}

/** What has been found out about a candidate. The higher one stays. */
export const marks = { none: 0, suspect: 1, reached: 2 } as const
export type Mark = (typeof marks)[keyof typeof marks]

export interface CandidateFilesOptions {
  /** Bytes of paths that are held in memory; the rest is on disk. Default 64 MiB. */
  readonly memoryBytes?: number
  /** Where the folder for what does not fit is made. Default: the system's folder for temporary files. */
  readonly temporaryFolder?: string
}

const chunkBytes = 1024 * 1024
const recordBytes = 1 + 8 + 8 + 4

interface Chunk {
  readonly length: number
  /** The bytes, while they are in memory; else where they are on disk. */
  readonly held: Buffer | undefined
  readonly offset: number
}

export class CandidateFiles {
  readonly #folder: string
  readonly #memoryBytes: number
  readonly #seeds = [randomBytes(4).readInt32LE(), randomBytes(4).readInt32LE()] as const
  /** Two halves of a hash, and a number plus one, for each slot; 0 is an empty slot. */
  #slots = new Int32Array(3 * 1024)
  #marks = new Uint8Array(1024)
  readonly #chunks: Chunk[] = []
  #current = Buffer.allocUnsafe(chunkBytes)
  #used = 0
  #heldBytes = 0
  #file: number | undefined
  #fileBytes = 0
  #size = 0
  #closed = false

  private constructor(folder: string, memoryBytes: number) {
    this.#folder = folder
    this.#memoryBytes = memoryBytes
  }

  static async open(options: CandidateFilesOptions = {}): Promise<CandidateFiles> {
    const folder = await temporaryFolder('paths', options.temporaryFolder)
    return new CandidateFiles(folder, options.memoryBytes ?? 64 * 1024 ** 2)
  }

  get size(): number {
    return this.#size
  }

  /** Bytes of paths that are on disk. */
  get spilledBytes(): number {
    return this.#fileBytes
  }

  /** Adds a file under the key it is compared by. False when there is one of this key already. */
  add(key: string, file: CandidateFile): boolean {
    if ((this.#size + 1) * 5 > this.#slots.length) this.#grow()
    const [high, low] = hashOf(key, this.#seeds)
    const slot = firstSlot(this.#slots, high, low)
    if (this.#slots[slot + 2] !== 0) return false
    this.#slots[slot] = high
    this.#slots[slot + 1] = low
    this.#slots[slot + 2] = this.#size + 1
    this.#write(file)
    this.#size += 1
    return true
  }

  /** Notes what was found out about the candidate of this key, if there is one. */
  mark(key: string, mark: Mark): void {
    const index = this.#indexOf(key)
    if (index >= 0 && mark > (this.#marks[index] ?? 0)) this.#marks[index] = mark
  }

  /** What is known about the candidate of this key by now; undefined when there is none. */
  markOf(key: string): Mark | undefined {
    const index = this.#indexOf(key)
    return index < 0 ? undefined : (this.#marks[index] as Mark)
  }

  /** The candidates with this mark as it is when they are read, in the order they were added. */
  async *marked(mark: Mark, batchFiles = 1000): AsyncGenerator<CandidateFile[]> {
    let index = 0
    let batch: CandidateFile[] = []
    const chunks = [...this.#chunks, { length: this.#used, held: this.#current, offset: 0 }]
    for (const chunk of chunks) {
      const bytes = this.#read(chunk)
      for (let at = 0; at < chunk.length; index += 1) {
        const length = bytes.readUInt32LE(at + 17)
        if (this.#marks[index] === mark) batch.push(fileAt(bytes, at, length))
        at += recordBytes + length
        if (batch.length >= batchFiles) {
          yield batch
          // Others may have been marked while the batch was worked on, but not those in it.
          batch = []
        }
      }
      await otherWork()
    }
    if (batch.length > 0) yield batch
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    if (this.#file !== undefined) closeSync(this.#file)
    await rm(this.#folder, { recursive: true, force: true })
  }

  #write(file: CandidateFile): void {
    const needed = recordBytes + file.path.length * 3
    if (this.#used + needed > this.#current.length) this.#nextChunk(needed)
    const at = this.#used
    const length = this.#current.write(file.path, at + recordBytes)
    this.#current.writeUInt8(kinds.indexOf(file.kind), at)
    this.#current.writeDoubleLE(file.bytes, at + 1)
    this.#current.writeDoubleLE(file.modifiedAtMs, at + 9)
    this.#current.writeUInt32LE(length, at + 17)
    this.#used += recordBytes + length
    if (this.#size >= this.#marks.length) {
      const larger = new Uint8Array(this.#marks.length * 2)
      larger.set(this.#marks)
      this.#marks = larger
    }
  }

  #nextChunk(needed: number): void {
    const full = this.#current.subarray(0, this.#used)
    if (this.#heldBytes + full.length <= this.#memoryBytes) {
      this.#chunks.push({ length: full.length, held: Buffer.from(full), offset: 0 })
      this.#heldBytes += full.length
    } else {
      this.#file ??= openSync(join(this.#folder, 'paths'), 'w+', 0o600)
      for (let done = 0; done < full.length;) {
        done += writeSync(this.#file, full, done, full.length - done, this.#fileBytes + done)
      }
      this.#chunks.push({ length: full.length, held: undefined, offset: this.#fileBytes })
      this.#fileBytes += full.length
    }
    if (this.#current.length < needed) this.#current = Buffer.allocUnsafe(needed)
    this.#used = 0
  }

  #read({ length, held, offset }: Chunk): Buffer {
    if (held !== undefined) return held
    const bytes = Buffer.allocUnsafe(length)
    for (let done = 0; done < length;) {
      const read = readSync(this.#file ?? -1, bytes, done, length - done, offset + done)
      if (read === 0) throw new Error(`${this.#folder} was cut while it was in use`)
      done += read
    }
    return bytes
  }

  /** The number of the candidate of this key; below 0 when there is none. */
  #indexOf(key: string): number {
    if (this.#size === 0) return -1
    const [high, low] = hashOf(key, this.#seeds)
    return (this.#slots[firstSlot(this.#slots, high, low) + 2] ?? 0) - 1
  }

  #grow(): void {
    const old = this.#slots
    const slots = new Int32Array(old.length * 2)
    for (let from = 0; from < old.length; from += 3) {
      if (old[from + 2] === 0) continue
      const to = firstSlot(slots, old[from] ?? 0, old[from + 1] ?? 0)
      slots.set(old.subarray(from, from + 3), to)
    }
    this.#slots = slots
  }
}

function fileAt(bytes: Buffer, at: number, length: number): CandidateFile {
  return {
    kind: kinds[bytes.readUInt8(at)] ?? 'other',
    bytes: bytes.readDoubleLE(at + 1),
    modifiedAtMs: bytes.readDoubleLE(at + 9),
    path: bytes.toString('utf8', at + recordBytes, at + recordBytes + length),
  }
}

/** The slot of a hash, or the empty one where it would go. The number of slots is a power of two. */
function firstSlot(slots: Int32Array, high: number, low: number): number {
  const mask = slots.length / 3 - 1
  for (let at = low & mask; ; at = (at + 1) & mask) {
    const slot = at * 3
    if (slots[slot + 2] === 0 || (slots[slot] === high && slots[slot + 1] === low)) return slot
  }
}

const hashed: [number, number] = [0, 0]

/** Two hashes of 32 bits over the code units, mixed with each other at the end. */
function hashOf(text: string, [seedA, seedB]: readonly [number, number]): readonly [number, number] {
  let a = seedA ^ 0x9e3779b9
  let b = seedB ^ 0x85ebca6b
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    a = Math.imul(a ^ unit, 0x9e3779b1)
    b = Math.imul(b ^ unit, 0x5f356495)
  }
  a = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ Math.imul(b ^ (b >>> 13), 0xc2b2ae35)
  b = Math.imul(b ^ (b >>> 16), 0x85ebca6b) ^ Math.imul(a ^ (a >>> 13), 0xc2b2ae35)
  hashed[0] = a | 0
  hashed[1] = b | 0
  return hashed
}
