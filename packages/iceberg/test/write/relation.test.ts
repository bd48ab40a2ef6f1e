import { expect, test } from 'vitest'
import { valueFromBytes, writeRelation, type NewTable } from '../../src/index.ts'
import { bed, entriesOf, field, filesBelow } from './bed.ts'

const { duckdb, newTable, rows } = bed()

const schema: NewTable['schema'] = {
  fields: [
    field(1, 'id', { type: 'long' }, true),
    field(2, 'p', { type: 'string' }),
    field(3, 'at', { type: 'struct', fields: [field(4, 'x y', { type: 'double' }, true)] }),
    field(5, 'tags', { type: 'list', elementId: 6, element: { type: 'string' }, elementRequired: true }),
    field(7, 'm', {
      type: 'map',
      keyId: 8,
      key: { type: 'string' },
      valueId: 9,
      value: { type: 'int' },
      valueRequired: true,
    }),
  ],
}
const byP: NewTable['partitionSpec'] = {
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
}
const row = (id: string, at = `{'x y': 0.5}`, tags = `['t']`, m = `map {'k': 1}`) =>
  `select ${id} as id, 'a' as p, ${at}::struct("x y" double) as "at", ${tags}::varchar[] as tags, ${m}::map(varchar, integer) as m`

test('a select is written as one file of its partition, and committed with others', async () => {
  const table = await newTable({ schema, partitionSpec: byP })
  const select = `${row('range')} from range(3)`
  const file = await writeRelation(duckdb(), table.loaded, { select, partition: ['a'] })
  if (file === undefined) throw new Error('there are rows')
  expect(file).toMatchObject({ recordCount: 3, partition: ['a'], specId: 0, content: 'data' })
  expect(file.filePath).toContain('/p=a/')
  expect(valueFromBytes({ type: 'long' }, file.upperBounds?.get(1) ?? new Uint8Array())).toBe(2n)
  await table.appendFiles([file])
  expect(await rows(table)).toEqual(
    [0n, 1n, 2n].map((id) => ({ id, p: 'a', at: { 'x y': 0.5 }, tags: ['t'], m: [['k', 1]] })),
  )
  // A file that is named twice is one file.
  await table.overwrite([], { replace: 'table' })
  const again = await writeRelation(duckdb(), table.loaded, { select, partition: ['a'] })
  if (again === undefined) throw new Error('there are rows')
  await table.appendFiles([again, again])
  expect((await entriesOf(table)).map((entry) => entry.file.filePath)).toEqual([again.filePath])
})

test('a select without rows leaves nothing', async () => {
  const table = await newTable({ schema, partitionSpec: byP })
  expect(
    await writeRelation(duckdb(), table.loaded, { select: `${row('1::bigint')} where false`, partition: ['a'] }),
  ).toBe(undefined)
  expect(await filesBelow(table, `${table.metadata.location}/data`)).toEqual([])
})

test.each([
  ['a column of another type', row('1::integer'), '"id" INTEGER as column 0, which must be "id" BIGINT'],
  ['a column of another name', row('1::bigint').replace('as id', 'as ID'), '"ID" BIGINT as column 0'],
  ['too few columns', 'select 1::bigint as id', 'nothing as column 1'],
  ['no value in a required column', row('null::bigint'), '1 rows for db.t'],
  ['no value inside of a struct', row('1::bigint', `{'x y': null}`), 'that is required, in column at'],
  ['no value in a list', row('1::bigint', `{'x y': 1}`, `[null]`), 'that is required, in column tags'],
  ['no value in a map', row('1::bigint', `{'x y': 1}`, `['t']`, `map {'k': null}`), 'that is required, in column m'],
])('%s is refused, and nothing is left', async (_, select, message) => {
  // Nothing is kept of the columns: that they have nulls must be seen all the same.
  const properties = { 'write.metadata.metrics.default': 'none' }
  const table = await newTable({ schema, partitionSpec: byP, properties })
  await expect(writeRelation(duckdb(), table.loaded, { select, partition: ['a'] })).rejects.toMatchObject({
    code: 'value_invalid',
    message: expect.stringContaining(message),
  })
  expect(await filesBelow(table, `${table.metadata.location}/data`)).toEqual([])
})

test('a null inside of nothing is no null', async () => {
  const table = await newTable({ schema })
  const select = row('1::bigint', 'null', 'null', 'null')
  expect((await writeRelation(duckdb(), table.loaded, { select }))?.recordCount).toBe(1)
  await expect(writeRelation(duckdb(), table.loaded, { select, partition: ['a'] })).rejects.toThrow(
    'has 0 values, not 1',
  )
})
