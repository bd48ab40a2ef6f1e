import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { serializeNameMapping, type Field, type PartitionSpec, type Type } from '../../src/index.ts'
import { optional, Workshop } from './hand-made-table.ts'

let workshop: Workshop
beforeAll(async () => {
  workshop = await Workshop.open()
})
afterAll(async () => {
  await workshop.close()
})

const struct = (...fields: Field[]): Type => ({ type: 'struct', fields })
const list = (elementId: number, element: Type): Type => ({ type: 'list', elementId, element, elementRequired: false })
const int: Type = { type: 'int' }
const long: Type = { type: 'long' }
const string: Type = { type: 'string' }

describe('columns by field id', () => {
  it('are renamed, reordered, dropped and added', async () => {
    const before = [optional(1, 'a', 'int'), optional(2, 'b', 'string'), optional(3, 'c', 'int')]
    const now = [optional(2, 'a', 'string'), optional(4, 'c', 'int'), optional(1, 'b', 'int')]
    const table = workshop.table({ schemas: [before, now] })
    await table.data("select 1 as a, 'x' as b, 9 as c", '{a: 1, b: 2, c: 3}')
    await table.data("select 2 as b, 'y' as a, 7 as c", '{b: 1, a: 2, c: 4}')
    expect(await table.rows()).toEqual([
      { a: 'x', c: null, b: 1 },
      { a: 'y', c: 7, b: 2 },
    ])
    expect(await table.rows({ schemaId: 0, columns: ['b', 'c'] })).toEqual([
      { b: 'x', c: 9 },
      { b: 'y', c: null },
    ])
  })

  it('are found in structs in lists in maps, and null stays null at every depth', async () => {
    const value = (...fields: Field[]): Type => ({
      type: 'map',
      keyId: 2,
      key: string,
      valueId: 3,
      value: list(4, struct(...fields)),
      valueRequired: false,
    })
    const before = [
      optional(1, 'm', value(optional(5, 'x', 'int'), optional(6, 'y', 'string'), optional(7, 'z', 'int'))),
    ]
    const now = [
      optional(1, 'n', value(optional(8, 'new', 'int'), optional(6, 'x', 'string'), optional(5, 'y', 'long'))),
    ]
    const table = workshop.table({ schemas: [before, now] })
    const type = 'map(varchar, struct(x integer, y varchar, z integer)[])'
    const one =
      "map {'k': [{'x': 1, 'y': 'q', 'z': 3}, null, {'x': null, 'y': null, 'z': null}], 'none': null, 'empty': []}"
    await table.data(
      `select unnest([${one}, map {}, null]::${type}[]) as m`,
      '{m: {__duckdb_field_id: 1, key: 2, value: {__duckdb_field_id: 3, element: {__duckdb_field_id: 4, x: 5, y: 6, z: 7}}}}',
    )
    expect(await table.rows()).toEqual([
      {
        n: [
          ['k', [{ new: null, x: 'q', y: '1' }, null, { new: null, x: null, y: null }]],
          ['none', null],
          ['empty', []],
        ],
      },
      { n: [] },
      { n: null },
    ])
  })

  it('have their initial defaults where files lack them, in structs too, and null where it was written', async () => {
    const defaults: Field[] = [
      { ...optional(2, 'i', 'int'), initialDefault: -5 },
      { ...optional(3, 's', 'string'), initialDefault: "it's" },
      { ...optional(4, 'd', { type: 'decimal', precision: 10, scale: 3 }), initialDefault: '-1.500' },
      { ...optional(5, 't', { type: 'timestamptz' }), initialDefault: '2024-02-29T12:00:00.000001+00:00' },
      { ...optional(6, 'f', { type: 'float' }), initialDefault: 0.5 },
      { ...optional(7, 'b', { type: 'binary' }), initialDefault: '00ff' },
      { ...optional(8, 'u', { type: 'uuid' }), initialDefault: 'f79c3e09-677c-4bbd-a479-3f349cb785e7' },
      { ...optional(9, 'day', { type: 'date' }), initialDefault: '1969-12-31' },
      { ...optional(10, 'time', { type: 'time' }), initialDefault: '23:59:59.999999' },
      { ...optional(13, 'ns', { type: 'timestamp_ns' }), initialDefault: '1969-12-31T23:59:59.999999999' },
      { ...optional(14, 'flag', { type: 'boolean' }), initialDefault: true },
      { ...optional(15, 'l', 'long'), initialDefault: 9_007_199_254_740_993n },
      {
        ...optional(11, 'in', struct({ ...optional(12, 'x', 'int'), required: true, initialDefault: 3 })),
        initialDefault: {},
      },
    ]
    const table = workshop.table({ schemas: [[optional(1, 'id', 'int'), ...defaults]], formatVersion: 3 })
    await table.data('select 1 as id', '{id: 1}')
    await table.data('select 2 as id, null::integer as i, 7::bigint as l', '{id: 1, i: 2, l: 15}')
    const filled = {
      s: "it's",
      d: '-1.500',
      t: '2024-02-29T12:00:00.000001Z',
      f: 0.5,
      b: '00ff',
      u: 'f79c3e09-677c-4bbd-a479-3f349cb785e7',
      day: '1969-12-31',
      time: '23:59:59.999999',
      ns: '1969-12-31T23:59:59.999999999',
      flag: true,
      l: '9007199254740993',
      in: { x: 3 },
    }
    expect(await table.rows()).toEqual([
      { id: 1, i: -5, ...filled },
      { id: 2, i: null, ...filled, l: '7' },
    ])
  })

  it('are widened', async () => {
    const decimal = (precision: number): Type => ({ type: 'decimal', precision, scale: 2 })
    const cases: [was: string, sql: string, now: Type, expected: unknown][] = [
      ['integer', '-2147483648', long, '-2147483648'],
      ['float', '0.1', { type: 'double' }, 0.10000000149011612],
      ['float', "'-0.0'", { type: 'double' }, '-0.0'],
      ['decimal(9,2)', '-9999999.99', decimal(18), '-9999999.99'],
      ['decimal(18,2)', '9999999999999999.99', decimal(38), '9999999999999999.99'],
      ['date', "'1969-12-31'", { type: 'timestamp' }, '1969-12-31T00:00:00.000000'],
      ['date', "'2024-02-29'", { type: 'timestamp_ns' }, '2024-02-29T00:00:00.000000000'],
    ]
    for (const [was, sql, now, expected] of cases) {
      const table = workshop.table({ schemas: [[optional(1, 'x', now)]], formatVersion: 3 })
      await table.data(`select cast(${sql} as ${was}) as x`, '{x: 1}')
      expect(await table.rows()).toEqual([{ x: expected }])
    }
  })

  it('that older pyarrow marked as times in UTC are times', async () => {
    const schema = [optional(1, 't', { type: 'time' }), optional(2, 'l', list(3, { type: 'time' }))]
    const table = workshop.table({ schemas: [schema] })
    const ids = '{t: 1, l: {__duckdb_field_id: 2, element: 3}}'
    await table.data("select '10:00:00.000001+00'::timetz as t, ['23:59:59+00'::timetz, null] as l", ids)
    await table.data("select '09:00:00'::time as t, ['00:00:00'::time] as l", ids)
    await table.equality("select '09:00:00+00'::timetz as t", '{t: 1}', [1], { sequence: 2n })
    const utc = { t: '10:00:00.000001', l: ['23:59:59.000000', null] }
    expect(await table.rows()).toEqual([utc])
    expect(await table.rows({ filter: { column: 't', op: '>', value: 34_200_000_000n } })).toEqual([utc])
  })

  it('of a type that the format does not change into the present one are refused', async () => {
    for (const [sql, now] of [
      ['1::bigint', int],
      ['1::double', { type: 'float' }],
      ["'x'", int],
      ['[1]', int],
      ['1', struct(optional(2, 'y', 'int'))],
      ['1.5::decimal(9,1)', { type: 'decimal', precision: 9, scale: 2 }],
      ['1::ubigint', long],
    ] as [
      string,
      Type,
    ][]) /* prettier-ignore */ {
      const table = workshop.table({ schemas: [[optional(1, 'x', now)]] })
      await table.data(`select ${sql} as x`, '{x: 1}')
      await expect(table.rows()).rejects.toThrow(/in column x, which the table has as/)
    }
  })

  it('that are required and nowhere are refused', async () => {
    const table = workshop.table({
      schemas: [[optional(1, 'id', 'int'), { ...optional(2, 'must', 'int'), required: true }]],
    })
    await table.data('select 1 as id', '{id: 1}')
    await expect(table.rows()).rejects.toThrow(/no column for the required field must \(id 2\)/)
  })

  it('may be called anything, in files of any name', async () => {
    const names = ['A', 'a', 'file_row_number', 'filename', 'a "quoted" name', 'żółw', 'select']
    const table = workshop.table({ schemas: [names.map((name, index) => optional(index + 1, name, 'int'))] })
    const columns = names.map((name, index) => `${index} as "${name.replaceAll('"', '""')}"`).join(', ')
    const ids = names.map((name, index) => `"${name.replaceAll('"', '""')}": ${index + 1}`).filter((_, i) => i > 1)
    // DuckDB writes no two names that differ in case only, so one is missing here.
    await table.data(`select ${columns.replace('1 as "a", ', '')}`, `{"A": 1, ${ids.join(', ')}}`, {
      name: 'x=1/a[1]*?.parquet',
    })
    await table.data('select 5 as a', '{a: 2}', { name: 'x=1/a1b.parquet' })
    const none = Object.fromEntries(names.map((name) => [name, null]))
    const first = Object.fromEntries(names.map((name, index) => [name, name === 'a' ? null : index]))
    expect(await table.rows()).toEqual([first, { ...none, a: 5 }])
  })
})

describe('files without field ids', () => {
  const fields = [optional(1, 'id', 'int'), optional(2, 'place', struct(optional(3, 'x', 'int'))), optional(4, 'tags', list(5, struct(optional(6, 't', 'string'))))] // prettier-ignore
  const query = "select 1 as nr, {'old': 5, 'x': 7} as place, [{'t': 'q'}] as tags"

  it('are read by the name mapping of the table', async () => {
    const mapping = serializeNameMapping([
      { fieldId: 1, names: ['id', 'nr'], fields: [] },
      { fieldId: 2, names: ['place'], fields: [{ fieldId: 3, names: ['old'], fields: [] }] },
      {
        fieldId: 4,
        names: ['tags'],
        fields: [{ fieldId: 5, names: ['element'], fields: [{ fieldId: 6, names: ['t'], fields: [] }] }],
      },
    ])
    const table = workshop.table({ schemas: [fields], properties: { 'schema.name-mapping.default': mapping } })
    await table.data(query, undefined)
    expect(await table.rows()).toEqual([{ id: 1, place: { x: 5 }, tags: [{ t: 'q' }] }])
  })

  it('are refused when there is none', async () => {
    const table = workshop.table({ schemas: [fields] })
    await table.data(query, undefined)
    await expect(table.rows()).rejects.toThrow(/has no field ids, and the table has no name mapping/)
  })
})

it('a column that is only in the partition has its value from there', async () => {
  const spec: PartitionSpec = {
    specId: 0,
    fields: [
      { fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } },
      { fieldId: 1001, sourceId: 3, name: 'q', transform: { name: 'truncate', width: 1 } },
      { fieldId: 1002, sourceId: 4, name: 'r', transform: { name: 'identity' } },
    ],
  }
  const fields = [optional(1, 'id', 'int'), optional(2, 'p', 'string'), optional(3, 'q', 'string'), { ...optional(4, 'r', 'int'), initialDefault: 9 }] // prettier-ignore
  const table = workshop.table({ schemas: [fields], specs: [spec] })
  await table.data('select 1 as id', '{id: 1}', { partition: ["o'p", 'x', null] })
  expect(await table.rows()).toEqual([{ id: 1, p: "o'p", q: null, r: null }])
})

describe('metadata columns', () => {
  it('say where a row is', async () => {
    const table = workshop.table({ schemas: [[optional(1, 'id', 'int')]] })
    const path = await table.data('select unnest([7, 8, 9]) as id', '{id: 1}')
    await table.positions([[path, 1]])
    expect(await table.rows({ metadataColumns: ['_file', '_pos', '_row_id'] })).toEqual([
      { id: 7, _file: path, _pos: '0', _row_id: null },
      { id: 9, _file: path, _pos: '2', _row_id: null },
    ])
  })

  it('have the lineage that a file keeps, and else that of its place', async () => {
    const table = workshop.table({ schemas: [[optional(1, 'id', 'int')]], formatVersion: 3 })
    await table.data('select unnest([1, 2]) as id', '{id: 1}', { sequence: 4n })
    await table.data(
      'select * from (values (3, 77::bigint, 2::bigint), (4, null, null)) as t(id, _row_id, _last_updated_sequence_number)',
      '{id: 1, _row_id: 2147483540, _last_updated_sequence_number: 2147483539}',
      { sequence: 5n },
    )
    const columns = ['_row_id', '_last_updated_sequence_number'] as const
    const rows = await table.rows({ metadataColumns: columns })
    expect(rows.map((row) => Object.values(row))).toEqual([
      [1, '1000', '4'],
      [2, '1001', '4'],
      [3, '77', '2'],
      [4, '1003', '5'],
    ])
  })
})

it.each(['timestamptz_ns', 'variant', 'geometry', 'geography'] as const)(
  'a column of type %s is refused',
  async (type) => {
    const fields = [optional(1, 'id', 'int'), optional(2, 'l', list(3, { type }))]
    const table = workshop.table({ schemas: [fields], formatVersion: 3 })
    await table.data('select 1 as id', '{id: 1}')
    await expect(table.rows()).rejects.toMatchObject({
      code: 'scan_unsupported',
      message: expect.stringMatching(`Column l.element of .* is ${type}, which cannot be read exactly`) as string,
    })
    expect(await table.rows({ columns: ['id'] })).toEqual([{ id: 1 }])
  },
)
