import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonText, parseJson, stringifyJson, type Json } from './json.ts'
import { parseJsonSteps } from './parse-steps.ts'
import { atOnce, inSlices } from './steps.ts'

const parsed = (text: string): Json => atOnce(parseJsonSteps(Buffer.from(text), 'the file'))

function outcomeOf(parse: () => Json): unknown {
  try {
    return { value: parse() }
  } catch (error) {
    return { message: (error as Error).message }
  }
}

test('any JSON is parsed as by the plain parser, and written as by the plain writer', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 5 }), fc.constantFrom(undefined, 2, '\t'), (json, indent) => {
      const text = JSON.stringify(JSON.parse(json), undefined, indent)
      expect(parsed(text)).toEqual(parseJson(text))
      expect(jsonText(parsed(text))).toBe(stringifyJson(parseJson(text)))
    }),
    { numRuns: 500 },
  )
})

test('any text that is nearly JSON has the same outcome as with the plain parser', () => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 3 }),
      fc.nat(),
      fc.constantFrom('', '"', ',', '}', ']', '\\', '0', '\n', 'x'),
      (json, at, put) => {
        const place = at % (json.length + 1)
        const text = json.slice(0, place) + put + json.slice(place + 1)
        expect(outcomeOf(() => parsed(text))).toEqual(outcomeOf(() => parseJson(text, 'the file')))
      },
    ),
    { numRuns: 2000 },
  )
})

test.each([
  ['numbers', '[0,-0,1.10,1e400,-1E-5,9007199254740993,-9223372036854775808,123456789.125]'],
  ['bad numbers', '[01]'],
  ['a number without digits', '[-]'],
  ['texts', '["","\\u0000\\n\\"","žluťoučký 🐎","\\ud83d"]'],
  ['a text with a control character', '["a\u0001"]'],
  ['a key twice, with another value', '{"a":1,"a":2}'],
  ['a key twice in an item', '[{"a":1,"a":2}]'],
  ['a key twice, with the same value', '{"a":[1],"a":[1]}'],
  ['a prototype', '{"__proto__":{"a":1},"constructor":2,"toString":3}'],
  ['a byte order mark', '\ufeff{"a":1}'],
  ['something after the end', '{} {}'],
  ['nothing', ''],
  ['spaces', ' \t\r\n[ 1 , { "a" : null , "b" : true } , false , [ ] , { } ] '],
])('%s are parsed as by the plain parser', (_what, text) => {
  const plain = text.startsWith('\ufeff') ? text.slice(1) : text
  expect(outcomeOf(() => parsed(text))).toEqual(outcomeOf(() => parseJson(plain, 'the file')))
})

test('others have their turn while a long text is parsed', async () => {
  const text = `{"items":[${Array.from({ length: 200_000 }, (_, n) => `{"id":${n},"name":"item ${n}"}`).join(',')}]}`
  let turns = 0
  let isDone = false
  const others = (): void => {
    turns += 1
    if (!isDone) setImmediate(others)
  }
  setImmediate(others)
  const json = (await inSlices(parseJsonSteps(Buffer.from(text)))) as { items: unknown[] }
  isDone = true
  expect(json.items).toHaveLength(200_000)
  expect(turns).toBeGreaterThan(1)
})
