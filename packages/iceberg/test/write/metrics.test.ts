import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  compareValues,
  valueFromBytes,
  valueToBytes,
  type ContentFile,
  type Field,
  type Value,
} from '../../src/index.ts'
import { bed, entriesOf, field } from './bed.ts'

const { newTable } = bed()

const fields: readonly Field[] = [
  field(1, 'b', { type: 'boolean' }),
  field(2, 'i', { type: 'int' }),
  field(3, 'l', { type: 'long' }),
  field(4, 'f', { type: 'float' }),
  field(5, 'd', { type: 'double' }),
  field(6, 'small', { type: 'decimal', precision: 9, scale: 2 }),
  field(7, 'mid', { type: 'decimal', precision: 18, scale: 0 }),
  field(8, 'big', { type: 'decimal', precision: 38, scale: 5 }),
  field(9, 'date', { type: 'date' }),
  field(10, 'time', { type: 'time' }),
  field(11, 'ts', { type: 'timestamp' }),
  field(12, 'tz', { type: 'timestamptz' }),
  field(13, 's', { type: 'string' }),
  field(14, 'u', { type: 'uuid' }),
  field(15, 'bin', { type: 'binary' }),
]

const long = fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n })
const decimal = (digits: number) => fc.bigInt({ min: 1n - 10n ** BigInt(digits), max: 10n ** BigInt(digits) - 1n })
const unit = fc.constantFrom('a', 'b', 'ÿ', '\ud7ff', '\uffff', '\u{10ffff}', '😀')
const text = fc.oneof(fc.string({ unit, maxLength: 4 }), fc.string({ unit, minLength: 15, maxLength: 300 }))
const double = fc.oneof(fc.double(), fc.constantFrom(Number.NaN, 0, -0, Infinity, -Infinity))
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 4 })
const row = fc.record({
  b: maybe(fc.boolean()),
  i: maybe(fc.integer()),
  l: maybe(long),
  f: maybe(fc.oneof(fc.float(), fc.constantFrom(Number.NaN, 0, -0))),
  d: maybe(double),
  small: maybe(decimal(9)),
  mid: maybe(decimal(18)),
  big: maybe(decimal(38)),
  date: maybe(fc.integer({ min: -700_000, max: 2_000_000 })),
  time: maybe(fc.bigInt({ min: 0n, max: 86_399_999_999n })),
  ts: maybe(fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n })),
  tz: maybe(fc.bigInt({ min: -(10n ** 17n), max: 10n ** 17n })),
  s: maybe(text),
  u: maybe(fc.uuid()),
  bin: maybe(fc.uint8Array({ maxLength: 40 })),
})

type Given = Readonly<Record<string, Value | null>>

/** The least and the greatest value without nulls and NaN, found by comparing all of them. */
function range(type: Field['type'], values: readonly (Value | null)[]): { min: Value; max: Value } | undefined {
  const counted = values.filter((v): v is Value => v !== null && !Number.isNaN(v))
  if (counted.length === 0) return undefined
  const ordered = counted.toSorted((a, b) => compareValues(type, a, b))
  return { min: ordered[0] as Value, max: ordered.at(-1) as Value }
}

function check(file: ContentFile | undefined, rows: readonly Given[], exact: boolean): void {
  expect(file?.recordCount).toBe(rows.length)
  for (const { id, name, type } of fields) {
    const values = rows.map((r) => r[name] ?? null)
    expect(file?.valueCounts?.get(id), name).toBe(rows.length)
    expect(file?.nullValueCounts?.get(id), name).toBe(values.filter((v) => v === null).length)
    const isFloat = type.type === 'float' || type.type === 'double'
    expect(file?.nanValueCounts?.get(id), name).toBe(isFloat ? values.filter((v) => Number.isNaN(v)).length : undefined)
    const [lower, upper] = [file?.lowerBounds?.get(id), file?.upperBounds?.get(id)]
    const expected = range(type, values)
    if (expected === undefined) {
      expect([lower, upper], name).toEqual([undefined, undefined])
      continue
    }
    const cut = !exact && (type.type === 'string' || type.type === 'binary')
    if (cut) {
      expect(compareValues(type, valueFromBytes(type, lower as Uint8Array), expected.min), name).toBeLessThanOrEqual(0)
      if (upper !== undefined) {
        expect(compareValues(type, valueFromBytes(type, upper), expected.max), name).toBeGreaterThanOrEqual(0)
        const length = type.type === 'binary' ? upper.length : Array.from(Buffer.from(upper).toString()).length
        expect(length).toBeLessThanOrEqual(16)
      }
      continue
    }
    const zero = (value: Value, is: number): Value => (value === 0 && isFloat ? is : value)
    expect(Buffer.from(lower ?? []), name).toEqual(Buffer.from(valueToBytes(type, zero(expected.min, -0))))
    expect(Buffer.from(upper ?? []), name).toEqual(Buffer.from(valueToBytes(type, zero(expected.max, 0))))
  }
}

test.each([
  ['cut to 16', {}, false],
  ['whole', { 'write.metadata.metrics.default': 'full' }, true],
])('counts and bounds, %s, are those of the rows', async (_, properties, exact) => {
  const table = await newTable({ schema: { fields }, properties })
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 8 }), async (given) => {
      await table.overwrite(given)
      const [entry] = await entriesOf(table)
      check(entry?.file, given, exact)
    }),
    { numRuns: 40 },
  )
})

test('bounds are those of all row groups, and each group has its offset', async () => {
  const table = await newTable({
    schema: {
      fields: [field(1, 'n', { type: 'long' }), field(2, 's', { type: 'string' }), field(3, 'd', { type: 'double' })],
    },
    properties: { 'write.parquet.row-group-size-bytes': '1', 'write.parquet.compression-codec': 'snappy' },
  })
  const given = Array.from({ length: 6000 }, (_, n) => ({
    n: BigInt(n * 7919) % 6007n,
    s: `s${n}`,
    d: n === 3000 ? Number.NaN : n,
  }))
  await table.append(given)
  const file = (await entriesOf(table))[0]?.file
  expect(file?.splitOffsets?.length).toBe(3)
  expect(file?.splitOffsets).toEqual(file?.splitOffsets?.toSorted((a, b) => a - b))
  expect(valueFromBytes({ type: 'long' }, file?.lowerBounds?.get(1) as Uint8Array)).toBe(0n)
  expect(valueFromBytes({ type: 'long' }, file?.upperBounds?.get(1) as Uint8Array)).toBe(6006n)
  expect(valueFromBytes({ type: 'double' }, file?.upperBounds?.get(3) as Uint8Array)).toBe(5999)
  expect(file?.nanValueCounts?.get(3)).toBe(1)
})

test('the modes of columns decide what is kept, and nothing is bounded inside lists', async () => {
  const table = await newTable({
    schema: {
      fields: [
        field(1, 'none', { type: 'int' }),
        field(2, 'counts', { type: 'double' }),
        field(3, 'kept', { type: 'string' }),
        field(4, 'in', { type: 'struct', fields: [field(5, 'x', { type: 'int' })] }),
        field(6, 'list', { type: 'list', elementId: 7, element: { type: 'int' }, elementRequired: false }),
      ],
    },
    properties: {
      'write.metadata.metrics.column.none': 'none',
      'write.metadata.metrics.column.counts': 'counts',
      'write.metadata.metrics.column.kept': 'truncate(2)',
      'write.metadata.metrics.column.in.x': 'full',
    },
  })
  await table.append([{ none: 1, counts: Number.NaN, kept: 'abc', in: { x: 5 }, list: [1, 2] }])
  const file = (await entriesOf(table))[0]?.file
  const keys = (map: ReadonlyMap<number, unknown> | undefined) => [...(map?.keys() ?? [])].toSorted((a, b) => a - b)
  const ids =
    table.metadata.schemas[0]?.fields.flatMap((f) => (f.type.type === 'struct' ? f.type.fields[0]?.id : f.id)) ?? []
  const [none, counts, kept, x] = ids as number[]
  expect(keys(file?.columnSizes)).toContain(none)
  expect(keys(file?.valueCounts)).not.toContain(none)
  expect(keys(file?.nanValueCounts)).toEqual([counts])
  expect(file?.nanValueCounts?.get(counts as number)).toBe(1)
  expect(keys(file?.lowerBounds)).toEqual([kept, x].toSorted((a, b) => Number(a) - Number(b)))
  expect(Buffer.from(file?.upperBounds?.get(kept as number) ?? []).toString()).toBe('ac')
})

test('the bounds of long texts are exact when they are to be whole', async () => {
  const table = await newTable({
    schema: { fields: [field(1, 's', { type: 'string' })] },
    properties: { 'write.metadata.metrics.default': 'full' },
  })
  await table.append([{ s: 'a'.repeat(400) }, { s: 'b'.repeat(400) }])
  const file = (await entriesOf(table))[0]?.file
  expect(Buffer.from(file?.lowerBounds?.get(1) ?? []).toString()).toBe('a'.repeat(400))
  expect(Buffer.from(file?.upperBounds?.get(1) ?? []).toString()).toBe('b'.repeat(400))
})

test('bounds are those of the file itself, whatever its path looks like', async () => {
  const identity = { name: 'identity' } as const
  const table = await newTable({
    schema: { fields: [field(1, 'p', { type: 'string' }), field(2, 'd', { type: 'double' })] },
    partitionSpec: {
      fields: [
        { fieldId: 1000, sourceId: 1, name: 'p', transform: identity },
        { fieldId: 1001, sourceId: 2, name: 'd', transform: identity },
      ],
    },
  })
  await table.append([
    { p: 'a', d: 7 },
    { p: '*', d: Number.NaN },
    { p: '[a]', d: Number.NaN },
  ])
  for (const { file } of await entriesOf(table)) {
    const isNan = Number.isNaN(file.partition[1])
    expect(file.nanValueCounts?.get(2)).toBe(isNan ? 1 : 0)
    expect(file.lowerBounds?.has(2)).toBe(!isNan)
    expect(Buffer.from(file.lowerBounds?.get(1) ?? []).toString()).toBe(file.partition[0])
  }
})

test('bounds of nanoseconds are exact', async () => {
  const type = { type: 'timestamp_ns' } as const
  const table = await newTable({ schema: { fields: [field(1, 'at', type)] }, formatVersion: 3 })
  await table.append([{ at: 1_700_000_000_123_456_789n }, { at: -1n }, { at: null }])
  const file = (await entriesOf(table))[0]?.file
  expect(valueFromBytes(type, file?.lowerBounds?.get(1) as Uint8Array)).toBe(-1n)
  expect(valueFromBytes(type, file?.upperBounds?.get(1) as Uint8Array)).toBe(1_700_000_000_123_456_789n)
})
