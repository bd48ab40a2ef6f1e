import { expect, test } from 'vitest'
import { mappedFieldOf, nameMappingOf, parseNameMapping, serializeNameMapping } from './name-mapping.ts'

const text =
  '[{"field-id":1,"names":["id","record_id"]},{"names":["gone"]},' +
  '{"field-id":3,"names":["location"],"fields":[{"field-id":4,"names":["latitude","lat"]},{"field-id":5,"names":["a.b"]}]}]'

test('a mapping finds fields by any of their names', () => {
  const mapping = parseNameMapping(text)
  expect(serializeNameMapping(mapping)).toBe(text)
  expect(mappedFieldOf(mapping, ['record_id'])?.fieldId).toBe(1)
  expect(mappedFieldOf(mapping, ['location', 'lat'])?.fieldId).toBe(4)
  expect(mappedFieldOf(mapping, ['location', 'a.b'])?.fieldId).toBe(5)
  expect(mappedFieldOf(mapping, ['gone'])?.fieldId).toBeUndefined()
  expect(mappedFieldOf(mapping, ['location', 'nope'])).toBeUndefined()
})

test('a schema has a mapping of its own', () => {
  const mapping = nameMappingOf({
    schemaId: 0,
    identifierFieldIds: [],
    fields: [
      {
        id: 1,
        name: 'tags',
        required: false,
        type: { type: 'list', elementId: 2, element: { type: 'string' }, elementRequired: false },
      },
    ],
  })
  expect(mappedFieldOf(mapping, ['tags', 'element'])?.fieldId).toBe(2)
})

test('what is no mapping is refused', () => {
  expect(() => parseNameMapping('{}')).toThrow('The name mapping is not an array')
})
