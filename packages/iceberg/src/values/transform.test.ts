import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Transform } from '../schema/partition-spec.ts'
import { parseTransform } from '../schema/partition-spec-json.ts'
import { parsePrimitiveType } from '../schema/type-json.ts'
import { parseDate, parseTime, parseTimestamp } from './date-time.ts'
import { applyTransform, bucketHash, transformedType, truncateString } from './transform.ts'
import type { Value } from './value.ts'

const utc = (text: string): bigint => parseTimestamp(text, 6, false)
const ns = (text: string): bigint => parseTimestamp(text, 9, false)

// Appendix B of the format.
test.each<[string, Value, number]>([
  ['int', 34, 2017239379],
  ['long', 34n, 2017239379],
  ['decimal(9,2)', 1420n, -500754589],
  ['date', parseDate('2017-11-16'), -653330422],
  ['time', parseTime('22:31:08', 6), -662762989],
  ['timestamp', utc('2017-11-16T22:31:08'), -2047944441],
  ['timestamp', utc('2017-11-16T22:31:08.000001'), -1207196810],
  ['timestamptz', utc('2017-11-16T22:31:08.000001'), -1207196810],
  ['timestamp_ns', ns('2017-11-16T22:31:08'), -2047944441],
  ['timestamp_ns', ns('2017-11-16T22:31:08.000001001'), -1207196810],
  ['timestamptz_ns', ns('2017-11-16T22:31:08.000001001'), -1207196810],
  ['string', 'iceberg', 1210000089],
  ['uuid', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', 1488055340],
  ['fixed[4]', Uint8Array.of(0, 1, 2, 3), -188683207],
  ['binary', Uint8Array.of(0, 1, 2, 3), -188683207],
])('the bucket hash of %s %s is %d', (type, value, hash) => {
  expect(bucketHash(parsePrimitiveType(type), value)).toBe(hash)
})

test.each<[string, string, Value | null, Value | null]>([
  ['bucket[100]', 'int', 34, 79],
  ['bucket[100]', 'long', 34n, 79],
  ['bucket[16]', 'string', null, null],
  ['truncate[10]', 'int', 1, 0],
  ['truncate[10]', 'int', -1, -10],
  ['truncate[10]', 'int', -10, -10],
  ['truncate[10]', 'int', -2147483648, 2147483646],
  ['truncate[10]', 'long', 1n, 0n],
  ['truncate[10]', 'long', -1n, -10n],
  ['truncate[50]', 'decimal(9,2)', 1065n, 1050n],
  ['truncate[50]', 'decimal(9,2)', -5n, -50n],
  ['truncate[3]', 'string', 'iceberg', 'ice'],
  ['truncate[2]', 'string', '😀é語x', '😀é'],
  ['truncate[3]', 'binary', Uint8Array.of(1, 2, 3, 4, 5), Uint8Array.of(1, 2, 3)],
  ['year', 'date', parseDate('1970-01-01'), 0],
  ['year', 'date', parseDate('1969-12-31'), -1],
  ['year', 'date', parseDate('0001-01-01'), -1969],
  ['month', 'date', parseDate('1969-12-31'), -1],
  ['month', 'date', parseDate('2017-12-01'), 575],
  ['year', 'date', 2 ** 31 - 1, 5_881_580 - 1970],
  ['month', 'timestamp', -(2n ** 63n), (-290_308 - 1970) * 12 + 11],
  ['day', 'date', -719162, -719162],
  ['year', 'timestamp', utc('1969-12-31T23:59:59.999999'), -1],
  ['month', 'timestamptz', utc('1969-11-30T23:00:00'), -2],
  ['day', 'timestamp', -1n, -1],
  ['day', 'timestamp', utc('2017-12-01T10:12:55.038194'), 17501],
  ['hour', 'timestamp', -1n, -1],
  ['hour', 'timestamp', utc('2017-12-01T10:12:55.038194'), 420034],
  ['hour', 'timestamp_ns', -1n, -1],
  ['day', 'timestamptz_ns', ns('1969-12-31T00:00:00'), -1],
  ['identity', 'uuid', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', 'f79c3e09-677c-4bbd-a479-3f349cb785e7'],
  ['void', 'int', 5, null],
])('%s of %s %s is %s', (transform, type, value, result) => {
  expect(applyTransform(parseTransform(transform), parsePrimitiveType(type), value)).toEqual(result)
})

test.each([
  ['hour', 'date'],
  ['year', 'string'],
  ['bucket[4]', 'double'],
  ['bucket[4]', 'boolean'],
  ['truncate[4]', 'uuid'],
  ['identity', 'variant'],
])('%s of %s is refused', (transform, type) => {
  expect(transformedType(parseTransform(transform), parsePrimitiveType(type))).toBeUndefined()
  expect(() => applyTransform(parseTransform(transform), parsePrimitiveType(type), 1)).toThrow('cannot be applied')
})

test.each(['zorder', 'bucket[0]', 'bucket[-1]', 'truncate[]', 'Bucket[4]'])('the transform %s is not known', (text) => {
  const transform: Transform = { name: 'unknown', text }
  expect(parseTransform(text)).toEqual(transform)
  expect(() => applyTransform(transform, { type: 'int' }, 1)).toThrow(
    expect.objectContaining({ code: 'metadata_unsupported' }),
  )
})

test('an int has the bucket it has as a long', () => {
  fc.assert(
    fc.property(fc.integer(), (value) => {
      expect(bucketHash({ type: 'int' }, value)).toBe(bucketHash({ type: 'long' }, BigInt(value)))
    }),
  )
})

test('a truncated value is at most the value, and less than a width away', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(2n ** 60n), max: 2n ** 60n }), fc.integer({ min: 1, max: 1000 }), (value, width) => {
      const cut = applyTransform({ name: 'truncate', width }, { type: 'long' }, value) as bigint
      expect(cut <= value && value - cut < BigInt(width) && cut % BigInt(width) === 0n).toBe(true)
    }),
  )
})

test('truncating a text counts code points', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', 'é', '語', '😀') }),
      fc.integer({ min: 1, max: 10 }),
      (text, width) => {
        expect(truncateString(text, width)).toBe(Array.from(text).slice(0, width).join(''))
      },
    ),
  )
})
