import { open, type FileHandle } from 'node:fs/promises'
import { IcebergError } from '../errors.ts'
import { structList, ThriftStruct } from './thrift-compact.ts'

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
    if (plain === footer) return
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
  const metadata = ThriftStruct.parse(footer)
  const schema = metadata.structs(schemaField) ?? []
  if (!schema.some(isAnnotated)) return footer
  const { convertedType, logicalType } = elementFields
  const plain = schema.map((element) => (isAnnotated(element) ? element.without(convertedType, logicalType) : element))
  return metadata.with(structList(schemaField, plain)).encode()
}

function isAnnotated(element: ThriftStruct): boolean {
  return annotated.some(
    ({ type, convertedType }) =>
      element.integer(elementFields.type) === type && element.integer(elementFields.convertedType) === convertedType,
  )
}
