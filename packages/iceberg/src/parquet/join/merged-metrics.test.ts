import { describe, expect, test } from 'vitest'
import type { ContentFile } from '../../manifests/content-file.ts'
import { fieldsById } from '../../schema/schema.ts'
import type { SortOrder } from '../../schema/sort-order.ts'
import type { Field, PrimitiveType } from '../../schema/type.ts'
import { valueFromBytes, valueToBytes } from '../../values/binary.ts'
import type { Value } from '../../values/value.ts'
import { joinedSortOrder } from './joined-sort-order.ts'
import { mergedMetrics } from './merged-metrics.ts'

const types: readonly PrimitiveType[] = [
  { type: 'long' },
  { type: 'string' },
  { type: 'double' },
  { type: 'decimal', precision: 9, scale: 2 },
  { type: 'geometry' },
]
const fields = fieldsById({
  fields: types.map((type, index): Field => ({ id: index + 1, name: `c${index + 1}`, required: false, type })),
})

interface Known {
  values?: number
  nulls?: number
  nans?: number
  lower?: Value
  upper?: Value
}

/** A file with what is known of one column. */
function file(id: number, { values, nulls, nans, lower, upper }: Known, more: Partial<ContentFile> = {}): ContentFile {
  const type = types[id - 1] ?? { type: 'long' }
  const map = <T>(value: T | undefined): ReadonlyMap<number, T> => new Map(value === undefined ? [] : [[id, value]])
  return {
    content: 'data',
    filePath: '',
    fileFormat: 'parquet',
    specId: 0,
    partition: [],
    recordCount: 10,
    fileSizeInBytes: 100,
    valueCounts: map(values),
    nullValueCounts: map(nulls),
    nanValueCounts: map(nans),
    lowerBounds: map(lower === undefined ? undefined : valueToBytes(type, lower)),
    upperBounds: map(upper === undefined ? undefined : valueToBytes(type, upper)),
    ...more,
  }
}

function bounds(id: number, files: readonly ContentFile[]): (Value | undefined)[] {
  const { lowerBounds, upperBounds } = mergedMetrics(files, fields)
  return [lowerBounds.get(id), upperBounds.get(id)].map((bound) =>
    bound === undefined ? undefined : valueFromBytes(types[id - 1] ?? { type: 'long' }, bound),
  )
}

test('counts and sizes are added up, and one that is not known of a file is not known of the whole', () => {
  const [a, b] = [file(1, { values: 10, nulls: 2 }), file(1, { values: 5, nulls: 5 })]
  const sized = [
    { ...a, columnSizes: new Map([[1, 7]]) },
    { ...b, columnSizes: new Map([[1, 8]]) },
  ]
  const merged = mergedMetrics(sized, fields)
  expect([merged.columnSizes, merged.valueCounts, merged.nullValueCounts].map((each) => each.get(1))).toEqual([
    15, 15, 7,
  ])
  const partly = mergedMetrics([a, b, { ...b, valueCounts: undefined }], fields)
  expect(partly.valueCounts.size).toBe(0)
  expect(partly.nullValueCounts.get(1)).toBe(12)
  expect(partly.columnSizes.size).toBe(0)
})

describe('bounds', () => {
  test('are compared as values of their type', () => {
    expect(bounds(1, [file(1, { lower: -3n, upper: 300n }), file(1, { lower: 2n, upper: 1n })])).toEqual([-3n, 300n])
    expect(bounds(4, [file(4, { lower: -300n, upper: 5n }), file(4, { lower: 4n, upper: 1000n })])).toEqual([
      -300n,
      1000n,
    ])
    // By UTF-8, where JavaScript's own order is another.
    const cut = file(2, {}, { lowerBounds: new Map([[2, Buffer.from([0x61, 0xc3])]]) })
    const whole = file(2, {}, { lowerBounds: new Map([[2, Buffer.from([0x61, 0xc4, 0x80])]]) })
    for (const files of [
      [cut, whole],
      [whole, cut],
    ]) {
      expect(mergedMetrics(files, fields).lowerBounds.get(2)).toEqual(Buffer.from([0x61, 0xc3]))
    }
    const damaged = file(1, {}, { lowerBounds: new Map([[1, Buffer.from([1])]]) })
    expect(mergedMetrics([damaged, damaged], fields).lowerBounds.size).toBe(0)
    const texts = [file(2, { lower: '\u{1F600}', upper: '\u{1F600}' }), file(2, { lower: '\uFFEE', upper: '\uFFEE' })]
    expect(bounds(2, texts)).toEqual(['\uFFEE', '\u{1F600}'])
    expect(bounds(3, [file(3, { lower: 0, upper: -0 }), file(3, { lower: -0, upper: 0 })])).toEqual([-0, 0])
  })

  test('that a file with values lacks are dropped; a file without values needs none', () => {
    const known = file(1, { values: 10, nulls: 0, lower: 1n, upper: 9n })
    expect(bounds(1, [known, file(1, { values: 10, nulls: 9 })])).toEqual([undefined, undefined])
    expect(bounds(1, [known, file(1, {})])).toEqual([undefined, undefined])
    expect(bounds(1, [file(1, { values: 10, nulls: 10 }), known])).toEqual([1n, 9n])
    expect(bounds(1, [file(1, {}, { recordCount: 0 }), known])).toEqual([1n, 9n])
    const nans = file(3, { values: 10, nulls: 4, nans: 6 })
    expect(bounds(3, [nans, file(3, { values: 1, nulls: 0, nans: 0, lower: 1, upper: 2 })])).toEqual([1, 2])
    expect(bounds(3, [file(3, { lower: NaN, upper: NaN }), file(3, { lower: 1, upper: 2 })])).toEqual([
      undefined,
      undefined,
    ])
  })

  test('of types without an order are dropped', () => {
    const point = Uint8Array.of(1, 2, 3)
    expect(bounds(5, [file(5, { lower: point, upper: point }), file(5, { lower: point, upper: point })])).toEqual([
      undefined,
      undefined,
    ])
  })
})

describe('the sort order', () => {
  const order = (direction: 'asc' | 'desc', ...sourceIds: number[]): SortOrder => ({
    orderId: 7,
    fields: sourceIds.map((sourceId) => ({
      sourceId,
      transform: { name: 'identity' },
      direction,
      nullOrder: 'nulls-last',
    })),
  })
  const sorted = (lower: bigint, upper: bigint, more: Partial<ContentFile> = {}): ContentFile =>
    file(1, { values: 10, nulls: 0, lower, upper }, { sortOrderId: 7, ...more })
  const ranges = [sorted(1n, 5n), sorted(6n, 9n), sorted(20n, 30n)]

  test('is kept by sorted ranges in order, and by no others', () => {
    expect(joinedSortOrder(ranges, [order('asc', 1)], fields)).toBe(7)
    expect(joinedSortOrder(ranges.toReversed(), [order('asc', 1)], fields)).toBe(0)
    expect(joinedSortOrder(ranges.toReversed(), [order('desc', 1)], fields)).toBe(7)
    expect(joinedSortOrder(ranges, [order('desc', 1)], fields)).toBe(0)
    expect(joinedSortOrder([sorted(1n, 7n), sorted(6n, 9n)], [order('asc', 1)], fields)).toBe(0)
    expect(joinedSortOrder(ranges.slice(0, 1), [order('asc', 1)], fields)).toBe(7)
  })

  test('is lost where files are sorted differently, or ranges touch and another column decides', () => {
    expect(joinedSortOrder([...ranges, { ...sorted(40n, 50n), sortOrderId: 8 }], [order('asc', 1)], fields)).toBe(0)
    const touching = [sorted(1n, 5n), sorted(5n, 9n)]
    expect(joinedSortOrder(touching, [order('asc', 1)], fields)).toBe(7)
    expect(joinedSortOrder(touching, [order('asc', 1, 2)], fields)).toBe(0)
  })

  test('is lost where nulls may be, or bounds are missing, or nothing is known of the order', () => {
    const nulls = new Map([[1, 1]])
    expect(joinedSortOrder([...ranges, sorted(40n, 50n, { nullValueCounts: nulls })], [order('asc', 1)], fields)).toBe(
      0,
    )
    expect(joinedSortOrder([...ranges, sorted(40n, 50n, { upperBounds: new Map() })], [order('asc', 1)], fields)).toBe(
      0,
    )
    expect(joinedSortOrder(ranges, [], fields)).toBe(0)
    expect(
      joinedSortOrder(
        ranges.map((each) => ({ ...each, sortOrderId: 0 })),
        [order('asc', 1)],
        fields,
      ),
    ).toBe(0)
  })
})
