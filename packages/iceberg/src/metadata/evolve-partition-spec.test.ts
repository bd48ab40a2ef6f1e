import { expect, test } from 'vitest'
import { applyUpdates } from './apply-updates.ts'
import { createTableMetadata } from './create-table-metadata.ts'
import { type PartitionChange, partitionSpecUpdates } from './evolve-partition-spec.ts'
import { sortOrderUpdates } from './evolve-sort-order.ts'
import { transformText } from '../schema/partition-spec.ts'
import { partitionSpecOf, sortOrderOf, type TableMetadata } from './table-metadata.ts'

function table(formatVersion: 1 | 2): TableMetadata {
  return createTableMetadata({
    location: 's3://b/t',
    schema: {
      fields: [
        { id: 1, name: 'id', required: true, type: { type: 'long' } },
        { id: 2, name: 'at', required: true, type: { type: 'timestamptz' } },
        { id: 3, name: 'who', required: true, type: { type: 'string' } },
      ],
    },
    partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'at_day', transform: { name: 'day' } }] },
    formatVersion,
    nowMs: 0,
  })
}

function evolve(base: TableMetadata, ...changes: PartitionChange[]): TableMetadata {
  return applyUpdates(base, partitionSpecUpdates(base, changes), { nowMs: 0 })
}

const shown = (metadata: TableMetadata): string[] =>
  partitionSpecOf(metadata).fields.map((f) => `${f.fieldId} ${f.name}=${transformText(f.transform)}(${f.sourceId})`)

const bucket: PartitionChange = { change: 'add', column: 'id', transform: { name: 'bucket', buckets: 16 } }
const removeDay: PartitionChange = { change: 'remove', name: 'at_day' }
const addDay: PartitionChange = { change: 'add', column: 'at', transform: { name: 'day' } }

test('v2 removes a field, and gives it its id back when it returns', () => {
  const one = evolve(table(2), bucket, removeDay)
  expect(shown(one)).toEqual(['1001 id_bucket_16=bucket[16](1)'])
  expect(one).toMatchObject({ defaultSpecId: 1, lastPartitionId: 1001 })
  const two = evolve(one, addDay)
  expect(shown(two)).toEqual(['1001 id_bucket_16=bucket[16](1)', '1000 at_day=day(2)'])
  expect(two.lastPartitionId).toBe(1001)
})

test('v1 keeps a removed field as void, and numbers on', () => {
  const one = evolve(table(1), removeDay, bucket)
  expect(shown(one)).toEqual(['1000 at_day=void(2)', '1001 id_bucket_16=bucket[16](1)'])
  const two = evolve(one, addDay)
  expect(shown(two)).toEqual(['1000 at_day_1000=void(2)', '1001 id_bucket_16=bucket[16](1)', '1002 at_day=day(2)'])
})

test.each([1, 2] as const)('v%d: a field removed and added at once stays as it was', (version) => {
  const base = table(version)
  expect(shown(evolve(base, removeDay, addDay))).toEqual(['1000 at_day=day(2)'])
  expect(evolve(base, removeDay, addDay).partitionSpecs).toHaveLength(1)
})

test('fields are renamed and named by hand', () => {
  const one = evolve(
    table(2),
    { change: 'rename', name: 'at_day', to: 'day' },
    { change: 'add', column: 'who', transform: { name: 'truncate', width: 4 }, name: 'w' },
  )
  expect(shown(one)).toEqual(['1000 day=day(2)', '1001 w=truncate[4](3)'])
})

test.each<[string, PartitionChange, string]>([
  ['the same field again', addDay, 'has this column and transform already'],
  ['a second time of one column', { change: 'add', column: 'at', transform: { name: 'hour' } }, 'is redundant'],
  ['a name that is taken', { ...bucket, name: 'at_day' }, 'already'],
  ['a column that is not there', { change: 'add', column: 'x', transform: { name: 'identity' } }, 'no column "x"'],
  ['a field that is not there', { change: 'remove', name: 'x' }, 'no partition field "x"'],
  [
    'a transform that does not fit',
    { change: 'add', column: 'who', transform: { name: 'year' } },
    'cannot partition by',
  ],
])('%s is refused', (_, change, message) => {
  expect(() => evolve(table(2), change)).toThrow(message)
})

test('a sort order is set, used again, and taken away', () => {
  const sorted = (base: TableMetadata, ...columns: Parameters<typeof sortOrderUpdates>[1]): TableMetadata =>
    applyUpdates(base, sortOrderUpdates(base, columns), { nowMs: 0 })
  const one = sorted(table(2), { column: 'id' }, { column: 'at', transform: { name: 'day' }, direction: 'desc' })
  expect(sortOrderOf(one)).toEqual({
    orderId: 1,
    fields: [
      { sourceId: 1, transform: { name: 'identity' }, direction: 'asc', nullOrder: 'nulls-first' },
      { sourceId: 2, transform: { name: 'day' }, direction: 'desc', nullOrder: 'nulls-last' },
    ],
  })
  const two = sorted(one, { column: 'who' })
  expect(two.defaultSortOrderId).toBe(2)
  const none = sorted(two)
  expect(none.defaultSortOrderId).toBe(0)
  expect(sorted(none, { column: 'who' }).defaultSortOrderId).toBe(2)
  expect(() => sorted(none, { column: 'x' })).toThrow('no column "x"')
})
