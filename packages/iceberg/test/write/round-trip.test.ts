import { expect, test } from 'vitest'
import { unwritableTypes, type NewTable, type Type } from '../../src/index.ts'
import { bed, entriesOf, field, filesBelow } from './bed.ts'

const { newTable, rows } = bed()

const everyType: NewTable['schema'] = {
  fields: [
    field(1, 'b', { type: 'boolean' }),
    field(2, 'i', { type: 'int' }, true),
    field(3, 'l', { type: 'long' }),
    field(4, 'f', { type: 'float' }),
    field(5, 'd', { type: 'double' }),
    field(6, 'dec', { type: 'decimal', precision: 30, scale: 3 }),
    field(7, 'date', { type: 'date' }),
    field(8, 'time', { type: 'time' }),
    field(9, 'ts', { type: 'timestamp' }),
    field(10, 'tz', { type: 'timestamptz' }),
    field(11, 's', { type: 'string' }),
    field(12, 'u', { type: 'uuid' }),
    field(13, 'bin', { type: 'binary' }),
    field(14, 'list', { type: 'list', elementId: 15, element: { type: 'string' }, elementRequired: false }),
    field(16, 'map', {
      type: 'map',
      keyId: 17,
      key: { type: 'string' },
      valueId: 18,
      value: { type: 'struct', fields: [field(22, 'n', { type: 'int' })] },
      valueRequired: false,
    }),
    field(19, 'a "point".x', {
      type: 'struct',
      fields: [field(20, 'x', { type: 'double' }), field(21, 'y y', { type: 'string' })],
    }),
  ],
}

const row = {
  b: true,
  i: 7,
  l: 2n ** 62n,
  f: 1.5,
  d: Number.NaN,
  dec: -123_456_789_012_345_678_901_234_567n,
  date: -19_000,
  time: 1n,
  ts: 1_700_000_000_123_456n,
  tz: -1n,
  s: 'ü'.repeat(300),
  u: '8b26a680-2fb1-4fa6-9578-25857c875edd',
  bin: Uint8Array.of(0, 255),
  list: ['a', null],
  map: [['k', { n: 1 }]],
  'a "point".x': { x: -0, 'y y': 'q' },
}
const empty = Object.fromEntries(everyType.fields.map(({ name }) => [name, null]))

test.each([1, 2, 3] as const)('rows of every writable type come back as they were, in v%i', async (formatVersion) => {
  const table = await newTable({ schema: everyType, formatVersion })
  const snapshot = await table.append([row, { i: 8 }])
  expect(snapshot?.summary).toMatchObject({
    operation: 'append',
    'added-data-files': '1',
    'added-records': '2',
    'total-records': '2',
    'total-data-files': '1',
    'total-delete-files': '0',
    'changed-partition-count': '1',
  })
  const back = await rows(table)
  expect(back[0]).toEqual({ ...row, bin: expect.anything() })
  expect(Buffer.from(back[0]?.['bin'] as Uint8Array)).toEqual(Buffer.from(row.bin))
  expect(back[1]).toEqual({ ...empty, i: 8 })
})

test('nanoseconds are kept in v3', async () => {
  const table = await newTable({
    schema: { fields: [field(1, 'at', { type: 'timestamp_ns' })] },
    formatVersion: 3,
  })
  await table.append([{ at: 1_700_000_000_123_456_789n }])
  expect(await rows(table)).toEqual([{ at: 1_700_000_000_123_456_789n }])
})

test.each(Object.entries(unwritableTypes))(
  'a column of type %s is refused before anything is written',
  async (name) => {
    const type = (name === 'fixed' ? { type: 'fixed', length: 4 } : { type: name }) as Type
    const schema = {
      fields: [field(1, 'id', { type: 'long' }), field(2, 'in', { type: 'struct', fields: [field(3, 'odd', type)] })],
    }
    const table = await newTable({ schema, formatVersion: 3 })
    await expect(table.append([{ id: 1n }])).rejects.toMatchObject({
      code: 'type_unsupported',
      message: expect.stringContaining('column in.odd is'),
    })
    expect(await filesBelow(table, `${table.metadata.location}/data`)).toEqual([])
  },
)

test.each([
  ['a column that is not there', { i: 1, nope: 1 }, 'there is no column "nope"'],
  ['a required column without a value', { b: true }, 'column i is required'],
  ['a number that does not fit', { i: 2 ** 31 }, 'column i of type int cannot hold'],
  ['a text that is no text', { i: 1, s: '\ud800' }, 'column s of type string'],
  ['a decimal of too many digits', { i: 1, dec: 10n ** 30n }, 'column dec of type decimal(30, 3)'],
  ['a time after the day', { i: 1, time: 86_400_000_000n }, 'column time'],
])('%s is refused, and nothing is committed', async (_, bad, message) => {
  const table = await newTable({ schema: everyType })
  await expect(table.append([row, bad])).rejects.toMatchObject({
    code: 'value_invalid',
    message: expect.stringContaining(`Row 1 cannot be written: ${message}`),
  })
  expect(table.metadata.snapshots).toEqual([])
})

test('names that differ in case only are refused', async () => {
  const table = await newTable({ schema: { fields: [field(1, 'a', { type: 'int' }), field(2, 'A', { type: 'int' })] } })
  await expect(table.append([{ a: 1, A: 2 }])).rejects.toMatchObject({ code: 'type_unsupported' })
})

test('missing values take the write default, and numbers and dates are understood', async () => {
  const table = await newTable({
    formatVersion: 3,
    schema: {
      fields: [
        field(1, 'id', { type: 'long' }),
        { ...field(2, 'n', { type: 'int' }), initialDefault: 5, writeDefault: 6 },
        field(3, 'at', { type: 'timestamptz' }),
      ],
    },
  })
  await table.append([
    { id: 3, at: new Date(1) },
    { id: 4n, n: null },
  ])
  expect(await rows(table)).toEqual([
    { id: 3n, n: 6, at: 1000n },
    { id: 4n, n: null, at: null },
  ])
})

test.each([
  ['identity', { type: 'string' }, ['a b', 'a/b', 'ü', null, ''], 5],
  ['bucket', { type: 'long' }, [1n, 2n, 3n, 4n, 1n], undefined],
  ['truncate', { type: 'string' }, ['abc', 'abd', 'b', 'a', null], 4],
  ['year', { type: 'date' }, [0, 364, 365, -1, null], 4],
  ['month', { type: 'timestamp' }, [0n, 1n, -1n, null, 10n ** 15n], 4],
  ['day', { type: 'timestamptz' }, [0n, 1n, -1n, null, 10n ** 15n], 4],
  ['hour', { type: 'timestamp' }, [0n, 1n, -1n, null, 3_600_000_000n], 4],
  ['void', { type: 'int' }, [1, 2, 3, 4, null], 1],
] as const)('rows go to their partitions by %s', async (name, type, values, files) => {
  const transform =
    name === 'bucket' ? { name, buckets: 4 } : name === 'truncate' ? { name, width: 2 } : ({ name } as const)
  const table = await newTable({
    schema: { fields: [field(1, 'id', { type: 'int' }), field(2, 'p p', type)] },
    partitionSpec: { fields: [{ fieldId: 1000, sourceId: 2, name: 'part', transform }] },
  })
  const given = values.map((value, id) => ({ id, 'p p': value }))
  const snapshot = await table.append(given)
  expect((await rows(table)).toSorted((a, b) => Number(a['id']) - Number(b['id']))).toEqual(given)
  const entries = await entriesOf(table)
  if (files !== undefined) expect(entries).toHaveLength(files)
  expect(snapshot?.summary?.['changed-partition-count']).toBe(String(entries.length))
})

test('the location of files follows the properties of the table', async () => {
  const schema = { fields: [field(1, 'id', { type: 'int' })] }
  const partitionSpec = {
    fields: [{ fieldId: 1000, sourceId: 1, name: 'id', transform: { name: 'identity' } as const }],
  }
  const table = await newTable({ schema, partitionSpec })
  await table.append([{ id: 1 }])
  expect((await entriesOf(table))[0]?.file.filePath).toMatch(/\/data\/id=1\/00000-0-[0-9a-f-]{36}-00001\.parquet$/)
  await table.setProperties({ 'write.object-storage.enabled': 'true' })
  await table.overwrite([{ id: 2 }])
  expect((await entriesOf(table))[0]?.file.filePath).toMatch(/\/data\/[01]{4}\/[01]{4}\/[01]{4}\/[01]{8}\/id=2\/[^/]+$/)
  await table.setProperties({ 'write.location-provider.impl': 'com.example.Provider' })
  await expect(table.append([{ id: 3 }])).rejects.toMatchObject({ code: 'metadata_unsupported' })
  await table.removeProperties(['write.location-provider.impl'])
  await table.setProperties({ 'write.format.default': 'orc' })
  await expect(table.append([{ id: 3 }])).rejects.toMatchObject({ code: 'metadata_unsupported' })
})

test('rows are sorted as the table wants, and divided into files', async () => {
  const table = await newTable({
    schema: { fields: [field(1, 'id', { type: 'int' }), field(2, 's', { type: 'string' })] },
  })
  await table.updateSortOrder([{ column: 's', direction: 'desc' }, { column: 'id' }])
  const given = [3, 1, 2, 5, 4].map((id) => ({ id, s: id % 2 === 0 ? 'even' : 'odd' }))
  await table.append(given, { maxRowsPerFile: 2 })
  expect((await rows(table)).map((r) => r['id'])).toEqual([1, 3, 5, 2, 4])
  const files = (await entriesOf(table)).map(({ file }) => file)
  expect(files.map((file) => [file.recordCount, file.sortOrderId])).toEqual([
    [2, 1],
    [2, 1],
    [1, 1],
  ])
})

test('a whole number has one zero, and one partition for it', async () => {
  const table = await newTable({
    schema: { fields: [field(1, 'n', { type: 'int' })] },
    partitionSpec: { fields: [{ fieldId: 1000, sourceId: 1, name: 'n', transform: { name: 'identity' } }] },
  })
  await table.append([{ n: 0 }, { n: -0 }])
  expect(await entriesOf(table)).toHaveLength(1)
})

test('the partition of a row follows from what is written, also inside of a struct that is left out', async () => {
  const table = await newTable({
    formatVersion: 3,
    schema: {
      fields: [
        field(1, 'id', { type: 'int' }),
        field(2, 'in', { type: 'struct', fields: [{ ...field(3, 'x', { type: 'int' }), writeDefault: 5 }] }),
      ],
    },
    partitionSpec: { fields: [{ fieldId: 1000, sourceId: 3, name: 'x', transform: { name: 'identity' } }] },
  })
  await table.append([{ id: 1 }, { id: 2, in: {} }, { id: 3, in: null }, { id: 4, in: { x: null } }])
  const files = (await entriesOf(table)).map(({ file }) => [file.partition[0], file.recordCount])
  expect(files).toEqual(
    expect.arrayContaining([
      [null, 3],
      [5, 1],
    ]),
  )
  expect((await rows(table)).find((r) => r['id'] === 1)).toEqual({ id: 1, in: null })
})
