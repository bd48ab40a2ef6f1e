import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { binary, i32, i64, i64List, structField, structList, ThriftStruct, zigzagBytes } from './thrift-compact.ts'

const goldens = fileURLToPath(new URL('../../test/goldens', import.meta.url))
const files = readdirSync(goldens, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.parquet'))

function footerOf(name: string): Buffer {
  const bytes = readFileSync(join(goldens, name))
  const length = bytes.readUInt32LE(bytes.length - 8)
  return bytes.subarray(bytes.length - 8 - length, bytes.length - 8)
}

/** Every struct and list of structs inside is taken apart too, and put together again. */
function rebuilt(struct: ThriftStruct): ThriftStruct {
  return new ThriftStruct(
    struct.fields.map((field) => {
      if (field.kind === 12) return structField(field.id, rebuilt(ThriftStruct.parse(field.value)))
      const isStructs = field.kind === 9 && ((field.value[0] ?? 0) & 0x0f) === 12
      if (!isStructs) return field
      return structList(field.id, (new ThriftStruct([field]).structs(field.id) ?? []).map(rebuilt))
    }),
  )
}

test('the footers of other writers are written again byte for byte', () => {
  expect(files.length).toBeGreaterThan(100)
  for (const name of files) {
    const footer = footerOf(name)
    expect(rebuilt(ThriftStruct.parse(footer)).encode().equals(footer), name).toBe(true)
  }
})

test('fields that are changed, added and removed leave the others as they are', () => {
  const inner = new ThriftStruct([i64(1, -5n), binary(40, Buffer.from('far')), i32(2, 7)])
  const struct = new ThriftStruct([i32(1, 3), structField(20, inner), i64List(21, [1, -2, 2 ** 52])])
  const read = ThriftStruct.parse(struct.encode())
  expect(read.struct(20)?.text(40)).toBe('far')
  expect(read.struct(20)?.integer(1)).toBe(-5)
  expect(read.struct(20)?.integer(2)).toBe(7)
  const changed = ThriftStruct.parse(read.with(i32(1, 4), i32(5, 9)).without(21).encode())
  expect(changed.fields.map(({ id }) => id)).toEqual([1, 5, 20])
  expect(changed.integer(1)).toBe(4)
  expect(changed.value(20)).toEqual(read.value(20))
})

test('numbers of 64 bits have the bytes of the format', () => {
  expect(zigzagBytes(-1n)).toEqual(Buffer.of(1))
  expect(zigzagBytes(300)).toEqual(Buffer.of(0xd8, 0x04))
  expect(zigzagBytes(2n ** 63n - 1n)).toEqual(Buffer.from('feffffffffffffffff01', 'hex'))
  expect(zigzagBytes(-(2n ** 63n))).toEqual(Buffer.from('ffffffffffffffffff01', 'hex'))
})

test('damaged bytes are refused, and nothing else happens', () => {
  const footer = footerOf(files[0] ?? '')
  for (let length = 0; length < footer.length; length += 7) {
    expect(() => ThriftStruct.parse(footer.subarray(0, length))).toThrow(/damaged/)
  }
  const deep = Buffer.alloc(100_000, 0x1c)
  expect(() => ThriftStruct.parse(deep)).toThrow(/nested more than/)
  const long = Buffer.concat([Buffer.of(0x19, 0xfc), Buffer.from('ffffffff07', 'hex'), Buffer.of(0)])
  expect(() => ThriftStruct.parse(long)).toThrow(/longer than/)
})
