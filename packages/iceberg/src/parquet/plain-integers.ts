import { open, type FileHandle } from 'node:fs/promises'
import { IcebergError } from '../errors.ts'

/*
 * DuckDB says of an int column that it is an int of 32 bits, which the column's physical type says already. Iceberg's
 * own writers leave it out, and its vectorized reader, up to 1.11, fails on such a column once it is widened to long
 * (apache/iceberg issue 16341). So it is taken out of the footer of a file that was just written.
 *
 * The footer is a Thrift struct in the compact protocol. Only the elements of its schema are written anew; all other
 * bytes are copied, since nothing in them depends on where they are.
 */

const magic = 'PAR1'
const tailBytes = 8
/** Fields of FileMetaData and SchemaElement, and values of their enums, by the numbers of parquet.thrift. */
const schemaField = 2
const elementFields = { type: 1, convertedType: 6, logicalType: 10 }
const annotated = [
  { type: 1, convertedType: 17 }, // INT32, INT_32
  { type: 2, convertedType: 18 }, // INT64, INT_64
]

/** Takes what DuckDB says of its integers out of a local Parquet file. */
export async function leaveIntegersPlain(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    const { size } = await file.stat()
    const tail = await bytesOf(file, size - tailBytes, tailBytes)
    const length = tail.readUInt32LE(0)
    const start = size - tailBytes - length
    if (tail.toString('latin1', 4) !== magic || start < 4) {
      throw new IcebergError('parquet_invalid', `${path} does not end as a Parquet file does.`, { details: { path } })
    }
    const footer = await bytesOf(file, start, length)
    const plain = withoutAnnotations(footer)
    if (plain.length === footer.length) return
    tail.writeUInt32LE(plain.length, 0)
    await file.write(Buffer.concat([plain, tail]), 0, plain.length + tailBytes, start)
    await file.truncate(start + plain.length + tailBytes)
  } finally {
    await file.close()
  }
}

async function bytesOf(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await file.read(bytes, 0, length, offset)
  return bytes.subarray(0, bytesRead)
}

function withoutAnnotations(footer: Buffer): Buffer {
  const reader = new CompactReader(footer)
  for (const field of reader.fields()) {
    if (field.id !== schemaField) {
      reader.skip(field.type)
      continue
    }
    const { size } = reader.listHeader()
    const start = reader.at
    const elements = Array.from({ length: size }, () => plainElement(reader))
    return Buffer.concat([footer.subarray(0, start), ...elements, footer.subarray(reader.at)])
  }
  return footer
}

/** One element of the schema, written anew without what is said twice. */
function plainElement(reader: CompactReader): Buffer {
  const fields: { id: number; type: number; value: Buffer }[] = []
  const numbers = new Map<number, number>()
  for (const { id, type } of reader.fields()) {
    const start = reader.at
    if (id === elementFields.type || id === elementFields.convertedType) numbers.set(id, reader.zigzag())
    else reader.skip(type)
    fields.push({ id, type, value: reader.between(start, reader.at) })
  }
  const isAnnotated = annotated.some(
    ({ type, convertedType }) =>
      numbers.get(elementFields.type) === type && numbers.get(elementFields.convertedType) === convertedType,
  )
  const kept = isAnnotated
    ? fields.filter(({ id }) => id !== elementFields.convertedType && id !== elementFields.logicalType)
    : fields
  // Each field says how far its id is from the one before; those of an element are never farther than 15.
  const parts = kept.flatMap(({ id, type, value }, nth) => {
    const before = kept[nth - 1]?.id ?? 0
    return [Buffer.from([((id - before) << 4) | type]), value]
  })
  return Buffer.concat([...parts, Buffer.from([0])])
}

/** Reads as much of Thrift's compact protocol as it takes to find one's way. */
class CompactReader {
  readonly #bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  between(start: number, end: number): Buffer {
    return this.#bytes.subarray(start, end)
  }

  /** The fields of a struct. Its caller reads or skips each value before it asks for the next. */
  *fields(): Generator<{ id: number; type: number }> {
    let id = 0
    for (;;) {
      const header = this.#byte()
      if (header === 0) return
      const delta = header >> 4
      id = delta === 0 ? this.zigzag() : id + delta
      yield { id, type: header & 0x0f }
    }
  }

  listHeader(): { size: number; type: number } {
    const header = this.#byte()
    const size = header >> 4
    return { size: size === 15 ? this.#varint() : size, type: header & 0x0f }
  }

  zigzag(): number {
    const value = this.#varint()
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  skip(type: number): void {
    switch (type) {
      case 1: // true and false are in the header of the field
      case 2:
        return
      case 3:
        this.at += 1
        return
      case 4:
      case 5:
      case 6:
        while (this.#byte() >= 0x80);
        return
      case 7:
        this.at += 8
        return
      case 8: {
        const length = this.#varint()
        this.at += length
        return
      }
      case 9:
      case 10: {
        const { size, type: of } = this.listHeader()
        // Booleans of a list take a byte each.
        for (let nth = 0; nth < size; nth += 1) this.skip(of === 1 || of === 2 ? 3 : of)
        return
      }
      case 12:
        for (const field of this.fields()) this.skip(field.type)
        return
      default:
        throw new IcebergError('parquet_invalid', `A Parquet footer has a value of the unknown kind ${type}.`)
    }
  }

  #byte(): number {
    const value = this.#bytes[this.at]
    if (value === undefined) throw new IcebergError('parquet_invalid', 'A Parquet footer ends in the middle.')
    this.at += 1
    return value
  }

  /** Small enough numbers only: sizes, ids, enums. */
  #varint(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.#byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
      scale *= 128
    }
  }
}
