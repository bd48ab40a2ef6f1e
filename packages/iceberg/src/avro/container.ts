import { IcebergError } from '../errors.ts'
import { viewOf } from '../values/bytes.ts'
import { AvroReader } from './avro-reader.ts'
import { type AvroSchema, parseAvroSchema } from './avro-schema.ts'
import { decompressor } from './codec.ts'

export const avroMagic = Buffer.from('Obj\x01', 'latin1')
const syncLength = 16

/** What an Avro file says of itself before its first block. */
export interface AvroHeader {
  readonly metadata: ReadonlyMap<string, string>
  readonly schema: AvroSchema
}

/** A decompressed block and the number of values in it. */
export interface AvroBlock {
  readonly count: number
  readonly data: Buffer
}

interface OpenHeader extends AvroHeader {
  readonly sync: Buffer
  readonly end: number
  readonly decompress: (block: Buffer) => Buffer
}

function readHeader(bytes: Buffer, what: string): OpenHeader {
  if (!bytes.subarray(0, 4).equals(avroMagic)) throw new IcebergError('avro_invalid', `${what} is not an Avro file`)
  const reader = new AvroReader(bytes, 4)
  const metadata = new Map<string, string>()
  for (let count = reader.number(); count !== 0; count = reader.number()) {
    if (count < 0) reader.skipNumber()
    for (let i = Math.abs(count); i > 0; i -= 1) metadata.set(reader.string(), reader.string())
  }
  const sync = Buffer.from(reader.fixed(syncLength))
  const schema = parseAvroSchema(metadata.get('avro.schema') ?? '', what)
  const decompress = decompressor(metadata.get('avro.codec') ?? 'null', what)
  return { metadata, schema, sync, end: reader.position, decompress }
}

/** A block that begins at `at`: where it ends, and what it holds; undefined when the bytes do not reach that far. */
function readBlock(
  bytes: Buffer,
  at: number,
  header: OpenHeader,
  what: string,
): (AvroBlock & { end: number }) | undefined {
  const reader = new AvroReader(bytes, at)
  if (!hasTwoNumbers(bytes, at)) return undefined
  const count = reader.number()
  const length = reader.number()
  if (count < 0 || length < 0) throw new IcebergError('avro_invalid', `${what} is damaged: a block has a size below 0`)
  const start = reader.position
  const end = start + length + syncLength
  if (end > bytes.length) return undefined
  if (!bytes.subarray(start + length, end).equals(header.sync)) {
    throw new IcebergError('avro_invalid', `${what} is damaged: a block does not end with the marker of the file`)
  }
  return { count, end, data: header.decompress(bytes.subarray(start, start + length)) }
}

function hasTwoNumbers(bytes: Buffer, at: number): boolean {
  let found = 0
  for (let i = at; i < bytes.length && found < 2; i += 1) if ((bytes[i] ?? 0) < 0x80) found += 1
  return found === 2
}

/** Opens a whole file in memory. Blocks are decompressed one after the other, as they are asked for. */
export function openAvro(file: Uint8Array, what: string): AvroHeader & { blocks(): Generator<AvroBlock> } {
  const bytes = viewOf(file)
  const header = readHeader(bytes, what)
  return {
    metadata: header.metadata,
    schema: header.schema,
    *blocks() {
      for (let at = header.end; at < bytes.length;) {
        const block = readBlock(bytes, at, header, what)
        if (block === undefined) throw cut(what)
        at = block.end
        yield block
      }
    },
  }
}

/** Opens a file that arrives in pieces. No more of it is held than the block being read and the pieces that hold it. */
export async function streamAvro(
  pieces: AsyncIterable<Uint8Array>,
  what: string,
): Promise<AvroHeader & { blocks(): AsyncGenerator<AvroBlock> }> {
  const iterator = pieces[Symbol.asyncIterator]()
  let bytes: Buffer = Buffer.alloc(0)
  const more = async (): Promise<boolean> => {
    const next = await iterator.next()
    if (next.done === true) return false
    bytes = bytes.length === 0 ? viewOf(next.value) : Buffer.concat([bytes, next.value])
    return true
  }
  let header: OpenHeader | undefined
  while (header === undefined) {
    if (!(await more())) header = readHeader(bytes, what)
    else if (bytes.length >= 4) header = attempt(() => readHeader(bytes, what), bytes)
  }
  const opened = header
  bytes = bytes.subarray(opened.end)
  return {
    metadata: opened.metadata,
    schema: opened.schema,
    async *blocks() {
      try {
        for (;;) {
          const block = bytes.length === 0 ? undefined : readBlock(bytes, 0, opened, what)
          if (block !== undefined) {
            bytes = bytes.subarray(block.end)
            yield block
          } else if (!(await more())) {
            if (bytes.length > 0) throw cut(what)
            return
          }
        }
      } finally {
        await iterator.return?.()
      }
    },
  }
}

/** The header, or undefined while it is not complete. What is no Avro at all fails at once. */
function attempt(read: () => OpenHeader, bytes: Buffer): OpenHeader | undefined {
  try {
    return read()
  } catch (error) {
    if (!bytes.subarray(0, 4).equals(avroMagic) || !(error instanceof IcebergError)) throw error
    return undefined
  }
}

function cut(what: string): IcebergError {
  return new IcebergError('avro_invalid', `${what} ends in the middle of a block: it is damaged or was cut`)
}
