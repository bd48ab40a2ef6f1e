import { expect, test } from 'vitest'
import type { Json } from '../json/json.ts'
import type { Type } from '../schema/type.ts'
import { parsePrimitiveType } from '../schema/type-json.ts'
import { type NestedValue, valueFromJson, valueToJson } from './json-value.ts'

// Appendix D of the format.
test.each<[string, Json, NestedValue]>([
  ['boolean', true, true],
  ['int', 34, 34],
  ['long', 34, 34n],
  ['float', 1, 1],
  ['decimal(9,2)', '14.20', 1420n],
  ['decimal(9,2)', '-0.05', -5n],
  ['date', '2017-11-16', 17486],
  ['date', '-0001-01-01', -719893],
  ['time', '22:31:08.123456', 81068123456n],
  ['timestamp', '2017-11-16T22:31:08.123456', 1510871468123456n],
  ['timestamptz', '2017-11-16T22:31:08.123456+00:00', 1510871468123456n],
  ['timestamp_ns', '2017-11-16T22:31:08.123456789', 1510871468123456789n],
  ['timestamptz_ns', '2017-11-16T22:31:08.123456789+00:00', 1510871468123456789n],
  ['string', 'iceberg', 'iceberg'],
  ['uuid', 'f79c3e09-677c-4bbd-a479-3f349cb785e7', 'f79c3e09-677c-4bbd-a479-3f349cb785e7'],
])('%s %s', (type, json, value) => {
  const parsed = parsePrimitiveType(type)
  expect(valueFromJson(parsed, json)).toEqual(value)
  const written = valueToJson(parsed, value)
  expect(typeof written === 'bigint' ? Number(written) : written).toEqual(json)
})

test('bytes are hexadecimal digits', () => {
  const fixed: Type = { type: 'fixed', length: 4 }
  expect([...(valueFromJson(fixed, '000102ff') as Uint8Array)]).toEqual([0, 1, 2, 255])
  expect(valueToJson({ type: 'binary' }, Uint8Array.of(0, 1, 2, 255))).toBe('000102ff')
  expect(() => valueFromJson(fixed, '0001')).toThrow('not the JSON form of a fixed[4]')
})

test('structs go by field id, maps as keys and values', () => {
  const struct: Type = {
    type: 'struct',
    fields: [
      { id: 1, name: 'a', required: false, type: { type: 'int' } },
      { id: 2, name: 'b', required: false, type: { type: 'string' } },
    ],
  }
  const map: Type = {
    type: 'map',
    keyId: 3,
    key: { type: 'string' },
    valueId: 4,
    value: { type: 'list', elementId: 5, element: { type: 'int' }, elementRequired: true },
    valueRequired: true,
  }
  expect(valueFromJson(struct, { '1': 1, '2': 'bar' })).toEqual(
    new Map<number, unknown>([
      [1, 1],
      [2, 'bar'],
    ]),
  )
  const json: Json = { keys: ['a', 'b'], values: [[1, 2], [3]] }
  expect(valueToJson(map, valueFromJson(map, json))).toEqual(json)
})

test.each<[string, Json]>([
  ['int', 2147483648],
  ['long', 1.5],
  ['long', '5'],
  ['decimal(9,2)', '1.005'],
  ['date', '2017-02-30'],
  ['time', '25:00:00'],
  ['time', '22:31:08.1234567'],
  ['timestamp', '2017-11-16T22:31:08+00:00'],
  ['timestamptz', '2017-11-16T22:31:08'],
  ['timestamptz', '2017-11-16T22:31:08+01:00'],
  ['uuid', 'f79c3e09'],
])('as %s, %s is refused', (type, json) => {
  expect(() => valueFromJson(parsePrimitiveType(type), json)).toThrow(
    expect.objectContaining({ code: 'value_invalid' }),
  )
})
