import { expect, test } from 'vitest'
import { applyUpdates } from './apply-updates.ts'
import { createTableMetadata } from './create-table-metadata.ts'
import { evolveSchema, type SchemaChange, schemaUpdates } from './evolve-schema.ts'
import type { Transform } from '../schema/partition-spec.ts'
import { fieldsById, findField, type Schema } from '../schema/schema.ts'
import { schemaOf, type TableMetadata } from './table-metadata.ts'
import type { Field, Type } from '../schema/type.ts'

const field = (name: string, type: Type, required = false): Field => ({ id: 0, name, required, type })
const struct = (...fields: Field[]): Type => ({ type: 'struct', fields })
const list = (element: Type): Type => ({ type: 'list', elementId: 0, element, elementRequired: false })
const map = (key: Type, value: Type): Type => ({ type: 'map', keyId: 0, key, valueId: 0, value, valueRequired: false })
const int: Type = { type: 'int' }

function table(formatVersion: 2 | 3 = 3): TableMetadata {
  let id = 100
  const numbered = (f: Field): Field => ({ ...f, id: (id += 1) })
  return createTableMetadata({
    location: 's3://b/t',
    schema: {
      fields: [
        field('id', int, true),
        field('where', struct(field('lat', { type: 'float' }), field('lon', { type: 'float' }))),
        field('tags', list(struct(field('name', { type: 'string' })))),
        field('prices', map(struct(field('k', int)), struct(field('p', { type: 'decimal', precision: 9, scale: 2 })))),
        field('dotted.name', { type: 'date' }),
      ].map(numbered),
    },
    formatVersion,
    nowMs: 0,
  })
}

function evolve(changes: SchemaChange[], version: 2 | 3 = 3): Schema {
  const base = table(version)
  return evolveSchema(schemaOf(base), changes, base)
}

const names = (schema: Schema): string[] => schema.fields.map((f) => f.name)

test('ids of a new schema go level by level', () => {
  const ids = [...fieldsById(schemaOf(table()))].map(([id, f]) => `${id} ${f.path.join('/')}`)
  expect(ids.toSorted((a, b) => Number.parseInt(a) - Number.parseInt(b))).toEqual([
    '1 id',
    '2 where',
    '3 tags',
    '4 prices',
    '5 dotted.name',
    '6 where/lat',
    '7 where/lon',
    '8 tags/element',
    '9 tags/element/name',
    '10 prices/key',
    '11 prices/value',
    '12 prices/key/k',
    '13 prices/value/p',
  ])
})

test('columns are added at the end with ids that were never used, nested ones too', () => {
  const schema = evolve([
    { change: 'add', name: 'a', type: int, doc: 'd' },
    { change: 'add', parent: 'tags', name: 'weight', type: { type: 'double' } },
    { change: 'add', parent: 'prices', name: 'q', type: list(int) },
    { change: 'add', parent: 'where', name: 'box', type: struct(field('w', int)) },
  ])
  expect(findField(schema, 'a')).toMatchObject({ id: 14, required: false, doc: 'd' })
  expect(findField(schema, 'tags.element.weight')?.id).toBe(15)
  expect(findField(schema, 'prices.value.q.element')?.id).toBe(17)
  expect(findField(schema, 'where.box.w')?.id).toBe(19)
})

test('a default is for old rows and for new ones, and the write default can change', () => {
  const schema = evolve([
    { change: 'add', name: 'n', type: int, required: true, default: 7 },
    { change: 'set-write-default', column: 'n', default: 8 },
  ])
  expect(findField(schema, 'n')).toMatchObject({ required: true, initialDefault: 7, writeDefault: 8 })
})

test('fields are renamed, moved, widened and dropped, and keep their ids', () => {
  const schema = evolve([
    { change: 'rename', column: 'where.lat', to: 'latitude' },
    { change: 'rename', column: ['dotted.name'], to: 'day' },
    { change: 'widen', column: 'id', type: { type: 'long' } },
    { change: 'widen', column: 'prices.value.p', type: { type: 'decimal', precision: 18, scale: 2 } },
    { change: 'widen', column: 'where.lon', type: { type: 'double' } },
    { change: 'move', column: 'tags', to: 'first' },
    { change: 'move', column: 'where.lon', to: { before: 'latitude' } },
    { change: 'move', column: 'id', to: { after: 'prices' } },
    { change: 'drop', column: 'day' },
  ])
  expect(names(schema)).toEqual(['tags', 'where', 'prices', 'id'])
  expect(findField(schema, 'where.latitude')?.id).toBe(6)
  expect(findField(schema, 'id')).toMatchObject({ id: 1, type: { type: 'long' } })
  expect(findField(schema, 'prices.value.p')?.type).toEqual({ type: 'decimal', precision: 18, scale: 2 })
  const where = findField(schema, 'where')?.type
  expect(where?.type === 'struct' && where.fields.map((f) => f.id)).toEqual([7, 6])
})

test('a dropped column added again is a new one', () => {
  const base = table()
  const dropped = applyUpdates(base, schemaUpdates(base, [{ change: 'drop', column: 'where.lon' }]), { nowMs: 1 })
  const again = applyUpdates(
    dropped,
    schemaUpdates(dropped, [{ change: 'add', parent: 'where', name: 'lon', type: { type: 'float' } }]),
    { nowMs: 2 },
  )
  expect(findField(schemaOf(again), 'where.lon')?.id).toBe(14)
  expect(again.schemas.map((s) => s.schemaId)).toEqual([0, 1, 2])
})

test('requiredness and identifier fields', () => {
  const schema = evolve([
    { change: 'set-identifiers', columns: ['id'] },
    { change: 'set-doc', column: 'id', doc: 'key' },
  ])
  expect(schema.identifierFieldIds).toEqual([1])
  const base = table()
  for (const change of [
    { change: 'drop', column: 'id' },
    { change: 'make-optional', column: 'id' },
  ] satisfies SchemaChange[]) {
    expect(() => evolveSchema(schema, [change], base)).toThrow('is an identifier field')
  }
  expect(findField(evolve([{ change: 'make-optional', column: 'id' }]), 'id')?.required).toBe(false)
})

test('v3 widens a date to a timestamp, v2 does not', () => {
  const change: SchemaChange = { change: 'widen', column: 'dotted.name', type: { type: 'timestamp' } }
  expect(findField(evolve([change]), 'dotted.name')?.type).toEqual({ type: 'timestamp' })
  expect(() => evolve([change], 2)).toThrow('of type date cannot become timestamp')
})

test.each<[Transform, boolean]>([
  [{ name: 'identity' }, false],
  [{ name: 'bucket', buckets: 4 }, false],
  [{ name: 'month' }, true],
])('a date that partitions are made of by %o is widened only where they stay the same', (transform, allowed) => {
  const partitionSpec = { fields: [{ fieldId: 1000, sourceId: 1, name: 'part', transform }] }
  const fields = [{ id: 1, name: 'day', required: false, type: { type: 'date' } }] as const
  const metadata = createTableMetadata({
    location: 's3://b/t',
    schema: { fields },
    partitionSpec,
    formatVersion: 3,
    nowMs: 1,
  })
  const widen = () => schemaUpdates(metadata, [{ change: 'widen', column: 'day', type: { type: 'timestamp' } }])
  if (allowed) expect(widen().length).toBe(2)
  else expect(widen).toThrow('the partition field "part" would have other values')
})

test.each<[string, SchemaChange, string]>([
  ['a required column without a default', { change: 'add', name: 'r', type: int, required: true }, 'needs a default'],
  ['a name that is taken', { change: 'add', name: 'id', type: int }, 'already'],
  ['a field of no struct', { change: 'add', parent: 'id', name: 'x', type: int }, 'has no fields'],
  ['a default of the wrong type', { change: 'add', name: 'x', type: int, default: 'a' }, 'not the JSON form'],
  ['narrowing', { change: 'widen', column: 'where.lat', type: { type: 'int' } }, 'cannot become int'],
  [
    'another scale',
    { change: 'widen', column: 'prices.value.p', type: { type: 'decimal', precision: 18, scale: 3 } },
    'cannot become',
  ],
  ['the key of a map', { change: 'widen', column: 'prices.key.k', type: { type: 'long' } }, 'key of a map'],
  ['dropping an element', { change: 'drop', column: 'tags.element' }, 'cannot be dropped'],
  ['dropping the last field', { change: 'drop', column: 'tags.element.name' }, 'is the last field'],
  ['a rename onto another', { change: 'rename', column: 'where.lat', to: 'lon' }, 'already'],
  ['a move beside a stranger', { change: 'move', column: 'where.lat', to: { after: 'id' } }, 'is not beside'],
  ['an optional identifier', { change: 'set-identifiers', columns: ['where.lat'] }, 'cannot be an identifier'],
  ['a column that is not there', { change: 'drop', column: 'nope' }, 'no column "nope"'],
])('%s is refused', (_, change, message) => {
  expect(() => evolve([change])).toThrow(message)
})

test('defaults need v3', () => {
  expect(() => evolve([{ change: 'add', name: 'n', type: int, default: 7 }], 2)).toThrow('needs format version 3')
})
