import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Type } from '../schema/type.ts'
import { parsePrimitiveType } from '../schema/type-json.ts'
import { valueFromBytes, valueToBytes } from './binary.ts'
import { compareValues } from './compare.ts'
import { valueFromJson, valueToJson } from './json-value.ts'
import type { Value } from './value.ts'
import { parseJson, stringifyJson } from '../json/json.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

test.each<[string, Value, string]>([
  ['boolean', false, '00'],
  ['boolean', true, '01'],
  ['int', 1234, 'd2040000'],
  ['int', -1, 'ffffffff'],
  ['long', 1234n, 'd204000000000000'],
  ['float', -4.5, '000090c0'],
  ['double', 6, '0000000000001840'],
  ['date', 1000, 'e8030000'],
  ['time', 10000000000n, '00e40b5402000000'],
  ['timestamp', 400000n, '801a060000000000'],
  ['string', 'ABé', '4142c3a9'],
  ['uuid', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', 'f79c3e09677c4bbda4793f349cb785e7'],
  ['fixed[2]', Uint8Array.of(1, 255), '01ff'],
  ['binary', Uint8Array.of(), ''],
  ['decimal(9,2)', 0n, '00'],
  ['decimal(9,2)', 1420n, '058c'],
  ['decimal(9,2)', 127n, '7f'],
  ['decimal(9,2)', 128n, '0080'],
  ['decimal(9,2)', -128n, '80'],
  ['decimal(9,2)', -129n, 'ff7f'],
  ['decimal(38,0)', 99999999999999999999999999999999999999n, '4b3b4ca85a86c47a098a223fffffffff'],
])('the bytes of %s %s', (type, value, expected) => {
  const parsed = parsePrimitiveType(type)
  expect(hex(valueToBytes(parsed, value))).toBe(expected)
  const back = valueFromBytes(parsed, Buffer.from(expected, 'hex'))
  expect(back instanceof Uint8Array ? hex(back) : back).toEqual(value instanceof Uint8Array ? hex(value) : value)
})

test('a bound written before its column was widened is still read', () => {
  expect(valueFromBytes({ type: 'long' }, valueToBytes({ type: 'int' }, -5))).toBe(-5n)
  expect(valueFromBytes({ type: 'double' }, valueToBytes({ type: 'float' }, 1.5))).toBe(1.5)
  expect(valueFromBytes({ type: 'timestamp' }, valueToBytes({ type: 'date' }, -1))).toBe(-86_400_000_000n)
  expect(valueFromBytes({ type: 'timestamp_ns' }, valueToBytes({ type: 'date' }, 1))).toBe(86_400_000_000_000n)
})

test('a value of the wrong kind or length is refused', () => {
  expect(() => valueToBytes({ type: 'long' }, 1)).toThrow('A value of type long cannot be a number')
  expect(() => valueFromBytes({ type: 'int' }, Uint8Array.of(1))).toThrow('A int has 4 bytes, but 1 were given')
  expect(() => valueToBytes({ type: 'variant' }, 1)).toThrow('has no binary single value')
})

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const anyValue: fc.Arbitrary<[Type, Value]> = fc.oneof(
  fc.tuple(fc.constant<Type>({ type: 'boolean' }), fc.boolean()),
  fc.tuple(fc.constant<Type>({ type: 'int' }), fc.integer()),
  fc.tuple(fc.constant<Type>({ type: 'date' }), fc.integer({ min: -100_000, max: 100_000 })),
  fc.tuple(fc.constant<Type>({ type: 'long' }), int64),
  fc.tuple(
    fc.constantFrom<Type>({ type: 'timestamp' }, { type: 'timestamptz' }),
    fc.bigInt({ min: -(2n ** 55n), max: 2n ** 55n }),
  ),
  fc.tuple(fc.constantFrom<Type>({ type: 'timestamp_ns' }, { type: 'timestamptz_ns' }), int64),
  fc.tuple(fc.constant<Type>({ type: 'time' }), fc.bigInt({ min: 0n, max: 86_399_999_999n })),
  fc.tuple(fc.constant<Type>({ type: 'double' }), fc.double({ noDefaultInfinity: true, noNaN: true })),
  fc.tuple(fc.constant<Type>({ type: 'string' }), fc.string({ unit: 'grapheme' })),
  fc.tuple(fc.constant<Type>({ type: 'uuid' }), fc.uuid()),
  fc.tuple(
    fc.constant<Type>({ type: 'decimal', precision: 38, scale: 5 }),
    fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }),
  ),
  fc.tuple(fc.constant<Type>({ type: 'binary' }), fc.uint8Array()),
)

function plain(value: unknown): unknown {
  return value instanceof Uint8Array ? hex(value) : value
}

test('any value comes back from its bytes', () => {
  fc.assert(
    fc.property(anyValue, ([type, value]) => {
      expect(plain(valueFromBytes(type, valueToBytes(type, value)))).toEqual(plain(value))
    }),
  )
})

test('any value comes back from its JSON, through a text', () => {
  fc.assert(
    fc.property(anyValue, ([type, value]) => {
      const back = plain(valueFromJson(type, parseJson(stringifyJson(valueToJson(type, value)))))
      // JSON has no negative zero.
      expect(back === 0 ? 0 : back).toEqual(value === 0 ? 0 : plain(value))
    }),
  )
})

test('values are ordered by their meaning, texts by their bytes', () => {
  expect(compareValues({ type: 'string' }, '\u{10000}', '\uffff')).toBeGreaterThan(0)
  expect(compareValues({ type: 'double' }, -0, 0)).toBeLessThan(0)
  expect(compareValues({ type: 'double' }, Number.NaN, Infinity)).toBeGreaterThan(0)
  expect(compareValues({ type: 'binary' }, Uint8Array.of(255), Uint8Array.of(1, 2))).toBeGreaterThan(0)
  expect(compareValues({ type: 'long' }, -1n, 1n)).toBeLessThan(0)
})
