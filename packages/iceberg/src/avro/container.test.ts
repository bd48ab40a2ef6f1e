import { expect, test } from 'vitest'
import { AvroReader } from './avro-reader.ts'
import { AvroWriter } from './avro-writer.ts'
import { createAvroFile } from './container-writer.ts'
import { openAvro, streamAvro } from './container.ts'
import { decompressor } from './codec.ts'
import { decompressSnappy } from './snappy.ts'
import fc from 'fast-check'

function fileOf(count: number, codec: 'deflate' | 'null' = 'deflate'): Buffer {
  const file = createAvroFile('"string"', { hello: 'wörld' }, codec)
  for (let i = 0; i < count; i += 1) file.append((writer) => writer.string(`value number ${i}`))
  return file.finish()
}

function strings(blocks: Iterable<{ count: number; data: Buffer }>): string[] {
  return [...blocks].flatMap(({ count, data }) => {
    const reader = new AvroReader(data)
    return Array.from({ length: count }, () => reader.string())
  })
}

async function* piecesOf(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

test.each(['deflate', 'null'] as const)('a file of many blocks comes back (%s)', (codec) => {
  const avro = openAvro(fileOf(20_000, codec), 'x.avro')
  expect(avro.metadata.get('hello')).toBe('wörld')
  const blocks = [...avro.blocks()]
  expect(blocks.length).toBeGreaterThan(4)
  expect(strings(blocks)).toEqual(Array.from({ length: 20_000 }, (_, i) => `value number ${i}`))
})

test.each([1, 7, 1000, 1_000_000])('a file that arrives in pieces of %d bytes is the same', async (size) => {
  const bytes = fileOf(size === 1 ? 50 : 20_000)
  const avro = await streamAvro(piecesOf(bytes, size), 'x.avro')
  const blocks = []
  for await (const block of avro.blocks()) blocks.push(block)
  expect(strings(blocks)).toEqual(strings(openAvro(bytes, 'x.avro').blocks()))
})

test('a file that was cut is refused wherever it was cut', async () => {
  const bytes = fileOf(100)
  for (const length of [0, 3, 10, 60, bytes.length - 17, bytes.length - 1]) {
    const cut = bytes.subarray(0, length)
    expect(() => strings(openAvro(cut, 'x.avro').blocks())).toThrow(expect.objectContaining({ name: 'IcebergError' }))
    const streamed = async (): Promise<void> => {
      const avro = await streamAvro(piecesOf(cut, 16), 'x.avro')
      for await (const block of avro.blocks()) expect(block.count).toBeGreaterThan(0)
    }
    await expect(streamed()).rejects.toThrow(expect.objectContaining({ name: 'IcebergError' }))
  }
})

test('a damaged marker and a strange codec are refused', () => {
  const bytes = fileOf(10)
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
  expect(() => [...openAvro(bytes, 'x.avro').blocks()]).toThrow('x.avro is damaged')
  expect(() => openAvro(Buffer.from('PAR1 and more'), 'x.parquet')).toThrow('x.parquet is not an Avro file')
  expect(() => decompressor('bzip2', 'x.avro')).toThrow('compressed with "bzip2"')
})

test('every 64-bit number comes back, as a bigint and as a number', () => {
  const edges = [
    0n,
    -1n,
    63n,
    64n,
    -64n,
    -65n,
    2n ** 30n,
    -(2n ** 30n),
    2n ** 52n,
    2n ** 53n - 1n,
    2n ** 63n - 1n,
    -(2n ** 63n),
  ]
  const check = (value: bigint): void => {
    const writer = new AvroWriter()
    writer.bigint(value)
    expect(new AvroReader(Buffer.from(writer.written)).bigint()).toBe(value)
    const skipped = new AvroReader(Buffer.from(writer.written))
    skipped.skipNumber()
    expect(skipped.atEnd).toBe(true)
    if (!Number.isSafeInteger(Number(value))) {
      expect(() => new AvroReader(Buffer.from(writer.written)).number()).toThrow('larger than any')
      return
    }
    expect(new AvroReader(Buffer.from(writer.written)).number()).toBe(Number(value))
    const other = new AvroWriter()
    other.number(Number(value))
    expect(other.written.equals(writer.written)).toBe(true)
  }
  for (const value of edges) check(value)
  fc.assert(fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), check))
})

test('Zstandard blocks and Snappy blocks with their checksum are decompressed', () => {
  // A frame of one block that is stored as it is.
  const frame = Buffer.from('28b52ffd2003190000616263', 'hex')
  expect(decompressor('zstandard', 'x')(frame).toString()).toBe('abc')
  const snappy = Buffer.from([3, 8, 0x61, 0x62, 0x63, 1, 2, 3, 4])
  expect(decompressor('snappy', 'x')(snappy).toString()).toBe('abc')
})

test('Snappy literals, copies and overlapping copies', () => {
  // 9 bytes: the literal "abc", then a copy of 6 bytes from 3 back, which overlaps itself.
  const block = Buffer.from([9, (3 - 1) << 2, 0x61, 0x62, 0x63, ((6 - 4) << 2) | 1, 3])
  expect(decompressSnappy(block).toString()).toBe('abcabcabc')
  // The same with a copy of two bytes of offset, and of four.
  expect(decompressSnappy(Buffer.from([6, 8, 0x61, 0x62, 0x63, (2 << 2) | 2, 3, 0])).toString()).toBe('abcabc')
  expect(decompressSnappy(Buffer.from([6, 8, 0x61, 0x62, 0x63, (2 << 2) | 3, 3, 0, 0, 0])).toString()).toBe('abcabc')
  const long = Buffer.alloc(100, 0x7a)
  expect(decompressSnappy(Buffer.concat([Buffer.from([100, 60 << 2, 99]), long])).equals(long)).toBe(true)
  for (const damaged of [[9], [9, 8, 0x61], [3, 8, 0x61, 0x62, 0x63, 9, 9], [2, 8, 0x61, 0x62, 0x63]]) {
    expect(() => decompressSnappy(Buffer.from(damaged))).toThrow('is damaged')
  }
})
