import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseJson, stringifyJson } from './json.ts'

test('an integer beyond 2^53 keeps every digit', () => {
  const text = '{"snapshot-id":1916084761853986166,"small":7,"max":9223372036854775807,"min":-9223372036854775808}'
  expect(parseJson(text)).toEqual({
    'snapshot-id': 1916084761853986166n,
    small: 7,
    max: 9223372036854775807n,
    min: -9223372036854775808n,
  })
  expect(stringifyJson(parseJson(text))).toBe(text)
})

test('numbers that JavaScript would write otherwise keep their text', () => {
  const text = '[1.10,1e400,-0,1E5,0.1,123456789.123456789123456789]'
  expect(stringifyJson(parseJson(text))).toBe(text)
})

test('what is not JSON is refused with the name of the thing', () => {
  expect(() => parseJson('{"a":', 'v1.metadata.json')).toThrow(
    expect.objectContaining({ code: 'json_invalid', message: expect.stringContaining('v1.metadata.json is not JSON') }),
  )
})

test('any JSON comes back as it was', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const same = stringifyJson(parseJson(text))
      expect(JSON.parse(same)).toEqual(JSON.parse(text))
    }),
  )
})
