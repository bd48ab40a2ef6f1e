import { randomBytes } from 'node:crypto'
import { AvroWriter } from './avro-writer.ts'
import { type AvroCodec, compress } from './codec.ts'
import { avroMagic } from './container.ts'

/** How many bytes a block has before it is compressed, as Avro's own writers have it. */
const blockBytes = 64_000

export interface AvroFileWriter {
  /** Writes one value of the file's schema through the given writer. */
  append(write: (writer: AvroWriter) => void): void
  /** About how long the file would be if it were finished now. */
  readonly length: number
  /** The whole file. Nothing can be appended after. */
  finish(): Buffer
}

/** An Avro object container file in memory. */
export function createAvroFile(
  schemaJson: string,
  metadata: Readonly<Record<string, string>>,
  codec: AvroCodec,
): AvroFileWriter {
  const sync = randomBytes(16)
  const parts = [header(schemaJson, metadata, codec, sync)]
  const block = new AvroWriter()
  let flushed = parts[0]?.length ?? 0
  let count = 0
  const flush = (): void => {
    if (count === 0) return
    const data = compress(codec, block.written)
    const lead = new AvroWriter()
    lead.number(count)
    lead.number(data.length)
    const part = Buffer.concat([lead.written, data, sync])
    parts.push(part)
    flushed += part.length
    block.clear()
    count = 0
  }
  return {
    append(write) {
      write(block)
      count += 1
      if (block.length >= blockBytes) flush()
    },
    get length() {
      return flushed + block.length
    },
    finish() {
      flush()
      return Buffer.concat(parts)
    },
  }
}

function header(
  schemaJson: string,
  metadata: Readonly<Record<string, string>>,
  codec: AvroCodec,
  sync: Buffer,
): Buffer {
  const entries = Object.entries({ 'avro.schema': schemaJson, 'avro.codec': codec, ...metadata })
  const writer = new AvroWriter()
  writer.raw(avroMagic)
  writer.list(entries, ([key, value]) => {
    writer.string(key)
    writer.string(value)
  })
  writer.raw(sync)
  return Buffer.from(writer.written)
}
