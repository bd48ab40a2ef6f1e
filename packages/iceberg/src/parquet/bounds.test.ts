import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareValues } from '../values/compare.ts'
import { valueFromBytes } from '../values/binary.ts'
import { lowerBound, upperBound } from './bounds.ts'
import { metricsModes } from './metrics-modes.ts'

const string = { type: 'string' } as const
const cut = (length: number) => ({ mode: 'truncate', length }) as const
const text = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString('utf8')

test('a text is cut by code points, and its upper bound is raised', () => {
  expect(text(lowerBound(string, 'abcdef', cut(3)))).toBe('abc')
  expect(text(upperBound(string, 'abcdef', cut(3)))).toBe('abd')
  expect(text(upperBound(string, 'abc', cut(3)))).toBe('abc')
  expect(text(lowerBound(string, '😀😀😀', cut(2)))).toBe('😀😀')
  expect(text(upperBound(string, '😀😀😀', cut(2)))).toBe('😀😁')
  expect(text(upperBound(string, 'a\u{10ffff}z', cut(2)))).toBe('b')
  expect(text(upperBound(string, 'a\ud7ffz', cut(2)))).toBe('a\ue000')
  expect(upperBound(string, '\u{10ffff}\u{10ffff}', cut(1))).toBeUndefined()
  expect(text(upperBound(string, 'abcdef', { mode: 'full' }))).toBe('abcdef')
})

test('binaries are cut by bytes', () => {
  const binary = { type: 'binary' } as const
  expect(upperBound(binary, Uint8Array.of(1, 255, 255, 7), cut(3))).toEqual(Buffer.from([2]))
  expect(upperBound(binary, Uint8Array.of(255, 255), cut(1))).toBeUndefined()
  expect(lowerBound(binary, Uint8Array.of(1, 2, 3), cut(2))).toEqual(Uint8Array.of(1, 2))
})

test('zero bounds cover both zeros, and NaN is never one', () => {
  const double = { type: 'double' } as const
  const lower = lowerBound(double, 0, cut(16)) ?? new Uint8Array()
  const upper = upperBound(double, -0, cut(16)) ?? new Uint8Array()
  expect(Object.is(valueFromBytes(double, lower), -0)).toBe(true)
  expect(Object.is(valueFromBytes(double, upper), 0)).toBe(true)
  expect(lowerBound(double, Number.NaN, cut(16))).toBeUndefined()
  expect(upperBound(double, Number.NaN, cut(16))).toBeUndefined()
})

test('bounds of any texts are around them', () => {
  const unit = fc.constantFrom('a', 'z', 'ÿ', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}')
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 6 }), fc.integer({ min: 1, max: 6 }), (value, length) => {
      const lower = text(lowerBound(string, value, cut(length))) ?? ''
      expect(compareValues(string, lower, value)).toBeLessThanOrEqual(0)
      const upper = text(upperBound(string, value, cut(length)))
      if (upper !== undefined) {
        expect(compareValues(string, upper, value)).toBeGreaterThanOrEqual(0)
        expect(Array.from(upper).length).toBeLessThanOrEqual(length)
      }
    }),
    { numRuns: 500 },
  )
})

test('modes come from the properties: per column, default, and only so many columns without one', () => {
  const fields = Array.from({ length: 120 }, (_, n) => ({
    id: n + 1,
    name: `c${n + 1}`,
    required: false,
    type: { type: 'long' } as const,
  }))
  const schema = { schemaId: 0, identifierFieldIds: [], fields }
  const inferred = metricsModes(schema, {})
  expect(inferred.get(100)).toEqual({ mode: 'truncate', length: 16 })
  expect(inferred.get(101)).toEqual({ mode: 'none' })
  const order = {
    orderId: 1,
    fields: [{ sourceId: 110, transform: { name: 'identity' }, direction: 'asc', nullOrder: 'nulls-first' }],
  } as const
  const given = metricsModes(
    schema,
    { 'write.metadata.metrics.default': 'counts', 'write.metadata.metrics.column.c3': 'full' },
    order,
  )
  expect(given.get(3)).toEqual({ mode: 'full' })
  expect(given.get(120)).toEqual({ mode: 'counts' })
  expect(given.get(110)).toEqual({ mode: 'truncate', length: 16 })
})
