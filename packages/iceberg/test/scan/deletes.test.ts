import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PartitionSpec, PlainJson } from '../../src/index.ts'
import { optional, Workshop } from './hand-made-table.ts'

let workshop: Workshop
beforeAll(async () => {
  workshop = await Workshop.open()
})
afterAll(async () => {
  await workshop.close()
})

const schema = [optional(1, 'id', 'int'), optional(2, 'part', 'string')]
const ids = '{id: 1, part: 2}'
const byPart: PartitionSpec = {
  specId: 1,
  fields: [{ fieldId: 1000, sourceId: 2, name: 'part', transform: { name: 'identity' } }],
}
const unpartitioned: PartitionSpec = { specId: 0, fields: [] }
const rowsOf = (part: string, count = 4): string =>
  `select range::integer as id, '${part}' as part from range(${count})`
const idsOf = (rows: Record<string, PlainJson>[]): PlainJson[] => rows.map((row) => row['id'] ?? null)

describe('position deletes', () => {
  it('apply to files of the same and of lower sequence numbers, and not of higher ones', async () => {
    const table = workshop.table({ schemas: [schema] })
    const older = await table.data(rowsOf('older'), ids, { sequence: 1n })
    const same = await table.data(rowsOf('same'), ids, { sequence: 2n })
    const newer = await table.data(rowsOf('newer'), ids, { sequence: 3n })
    await table.positions(
      [older, same, newer].map((path) => [path, 1] as const),
      { sequence: 2n },
    )
    const rows = await table.rows()
    expect(idsOf(rows.filter(({ part }) => part === 'older'))).toEqual([0, 2, 3])
    expect(idsOf(rows.filter(({ part }) => part === 'same'))).toEqual([0, 2, 3])
    expect(idsOf(rows.filter(({ part }) => part === 'newer'))).toEqual([0, 1, 2, 3])
  })

  it('apply to files of their own spec and partition', async () => {
    const table = workshop.table({ schemas: [schema], specs: [unpartitioned, byPart] })
    const a = await table.data(rowsOf('a'), ids, { specId: 1, partition: ['a'] })
    const b = await table.data(rowsOf('b'), ids, { specId: 1, partition: ['b'] })
    const old = await table.data(rowsOf('old'), ids, { specId: 0 })
    const all = [a, b, old].map((path) => [path, 0] as const)
    await table.positions(all, { sequence: 2n, specId: 1, partition: ['a'] })
    const rows = await table.rows()
    expect(idsOf(rows.filter(({ part }) => part === 'a'))).toEqual([1, 2, 3])
    expect(rows.length).toBe(11)
  })

  it('for one named file apply whatever their partition says', async () => {
    const table = workshop.table({ schemas: [schema], specs: [unpartitioned, byPart] })
    const a = await table.data(rowsOf('a'), ids, { specId: 1, partition: ['a'] })
    await table.positions([[a, 0]], { sequence: 2n, specId: 0, file: { referencedDataFile: a } })
    const bounds = new Map([[2147483546, Buffer.from(a)]])
    await table.positions([[a, 3]], { sequence: 2n, specId: 0, file: { lowerBounds: bounds, upperBounds: bounds } })
    expect(idsOf(await table.rows())).toEqual([1, 2])
  })

  it('of several files add up, and of other files do not count', async () => {
    const table = workshop.table({ schemas: [schema] })
    const a = await table.data(rowsOf('a'), ids)
    await table.positions([[a, 0]], { sequence: 2n })
    await table.positions([
      [a, 0],
      [a, 2],
      [`${a}x`, 1],
    ])
    expect(idsOf(await table.rows())).toEqual([1, 3])
  })

  it('without their columns are refused', async () => {
    const table = workshop.table({ schemas: [schema] })
    const a = await table.data(rowsOf('a'), ids)
    await table.positions([[a, 0]], { sequence: 2n })
    await table.equality(rowsOf('a'), ids, [1], { sequence: 2n, file: { content: 'position-deletes' } })
    await expect(table.rows()).rejects.toThrow(/has no column file_path/)
  })
})

describe('deletion vectors', () => {
  it('apply to the file they name, in place of its position deletes', async () => {
    const table = workshop.table({ schemas: [schema], formatVersion: 3 })
    const a = await table.data(rowsOf('a'), ids, { sequence: 1n })
    const b = await table.data(rowsOf('b'), ids, { sequence: 1n })
    await table.positions([[a, 0], [b, 0]], { sequence: 1n }) // prettier-ignore
    await table.vector(a, [1, 3], { sequence: 2n })
    const rows = await table.rows()
    expect(idsOf(rows.filter(({ part }) => part === 'a'))).toEqual([0, 2])
    expect(idsOf(rows.filter(({ part }) => part === 'b'))).toEqual([1, 2, 3])
  })

  it('apply to a file of the same sequence number, and not of a higher one', async () => {
    const table = workshop.table({ schemas: [schema], formatVersion: 3 })
    const same = await table.data(rowsOf('same'), ids, { sequence: 2n })
    const newer = await table.data(rowsOf('newer'), ids, { sequence: 3n })
    await table.vector(same, [0], { sequence: 2n })
    await table.vector(newer, [0], { sequence: 2n })
    expect((await table.rows()).length).toBe(7)
  })

  it('are refused when there are two for a file, or when the manifest says another number of rows', async () => {
    const twice = workshop.table({ schemas: [schema], formatVersion: 3 })
    const a = await twice.data(rowsOf('a'), ids)
    await twice.vector(a, [0], { sequence: 2n })
    await twice.vector(a, [1], { sequence: 3n })
    await expect(twice.rows()).rejects.toThrow(/has two deletion vectors/)
    const wrong = workshop.table({ schemas: [schema], formatVersion: 3 })
    await wrong.vector(await wrong.data(rowsOf('a'), ids), [0], { sequence: 2n, file: { recordCount: 2 } })
    await expect(wrong.rows()).rejects.toThrow(/deletes 1 rows, and its manifest says 2/)
  })
})

describe('equality deletes', () => {
  it('apply to files of lower sequence numbers only', async () => {
    const table = workshop.table({ schemas: [schema] })
    for (const [part, sequence] of [
      ['older', 1n],
      ['same', 2n],
      ['newer', 3n],
    ] as const)
      // prettier-ignore
      await table.data(rowsOf(part), ids, { sequence })
    await table.equality('select 1::integer as id', '{id: 1}', [1], { sequence: 2n })
    const rows = await table.rows()
    expect(idsOf(rows.filter(({ part }) => part === 'older'))).toEqual([0, 2, 3])
    expect(rows.length).toBe(11)
  })

  it('of a partition apply there, and those of an unpartitioned spec everywhere', async () => {
    const voided: PartitionSpec = {
      specId: 2,
      fields: [{ fieldId: 1001, sourceId: 2, name: 'part', transform: { name: 'void' } }],
    }
    for (const [specId, partition, left] of [
      [1, ['a'], 7],
      [0, [], 6],
      [2, [null], 6],
    ] as const) /* prettier-ignore */ {
      const table = workshop.table({ schemas: [schema], specs: [unpartitioned, byPart, voided] })
      await table.data(rowsOf('a'), ids, { specId: 1, partition: ['a'] })
      await table.data(rowsOf('b'), ids, { specId: 1, partition: ['b'] })
      await table.equality('select 1::integer as id', '{id: 1}', [1], { sequence: 2n, specId, partition })
      expect((await table.rows()).length).toBe(left)
    }
  })

  it('match null with null, and all their columns together', async () => {
    const table = workshop.table({ schemas: [schema] })
    const values = "(1, 'a'), (1, null), (null, 'a'), (null, null)"
    await table.data(`select * from (values ${values}) as t(id, part)`, ids)
    const deletes = "(1, null::varchar), (null, 'a')"
    await table.equality(`select * from (values ${deletes}) as t(id, part)`, ids, [1, 2], { sequence: 2n })
    expect(await table.rows()).toEqual([
      { id: 1, part: 'a' },
      { id: null, part: null },
    ])
  })

  it('match NaN with NaN, and tell the two zeros apart', async () => {
    const table = workshop.table({ schemas: [[optional(1, 'd', { type: 'double' })]] })
    await table.data("select unnest([0.0, '-0.0'::double, 'nan'::double, 1.0]) as d", '{d: 1}')
    await table.equality("select unnest(['-0.0'::double, 'nan'::double]) as d", '{d: 1}', [1], { sequence: 2n })
    expect(await table.rows()).toEqual([{ d: 0 }, { d: 1 }])
  })

  it('by a column that was renamed, widened, dropped, or added later still apply', async () => {
    const before = [optional(1, 'id', 'int'), optional(2, 'gone', 'string')]
    const now = [optional(1, 'key', 'long'), optional(3, 'late', 'int')]
    const table = workshop.table({ schemas: [before, now] })
    const values = "(1, 'x'), (2, 'y'), (3, 'z'), (4, 'w')"
    await table.data(`select * from (values ${values}) as t(id, gone)`, '{id: 1, gone: 2}')
    await table.equality('select 1::integer as id', '{id: 1}', [1], { sequence: 2n })
    await table.equality('select 2::bigint as key', '{key: 1}', [1], { sequence: 2n })
    await table.equality("select 'z' as gone", '{gone: 2}', [2], { sequence: 2n })
    expect(await table.rows()).toEqual([{ key: '4', late: null }])
    await table.equality('select null::integer as late', '{late: 3}', [3], { sequence: 2n })
    expect(await table.rows()).toEqual([])
  })

  it('by a field inside structs apply, where the struct is null too', async () => {
    const inner = { type: 'struct', fields: [optional(3, 'x', 'int'), optional(4, 'y', 'int')] } as const
    const table = workshop.table({ schemas: [[optional(1, 'id', 'int'), optional(2, 's', inner)]] })
    const ofFile = '{id: 1, s: {__duckdb_field_id: 2, x: 3, y: 4}}'
    await table.data("select 1 as id, {'x': 1, 'y': 2} as s union all select 2, {'x': 9, 'y': 3}", ofFile)
    await table.data('select 3 as id, null::struct(x integer, y integer) as s', ofFile)
    const deletes = "select {'y': 3} as s union all select {'y': null}"
    await table.equality(deletes, '{s: {__duckdb_field_id: 2, y: 4}}', [4], { sequence: 2n })
    expect(idsOf(await table.rows())).toEqual([1])
  })

  it('with extra columns look at the columns that they name', async () => {
    const table = workshop.table({ schemas: [schema] })
    await table.data(rowsOf('a'), ids)
    await table.equality("select 1::integer as id, 'other' as part", ids, [1], { sequence: 2n })
    expect(idsOf(await table.rows())).toEqual([0, 2, 3])
  })

  it('are refused by a field that DuckDB would read less exactly', async () => {
    const table = workshop.table({
      schemas: [[optional(1, 'id', 'int'), optional(2, 'at', { type: 'timestamptz_ns' })]],
      formatVersion: 3,
    })
    await table.data('select 1 as id', '{id: 1}')
    await table.equality('select now()::timestamp_ns as t', '{t: 2}', [2], { sequence: 2n })
    await expect(table.rows({ columns: ['id'] })).rejects.toMatchObject({ code: 'scan_unsupported' })
  })

  it('are refused without their column, or by a field that no schema has', async () => {
    for (const [equalityIds, message] of [
      [[2], /has no column part/],
      [[99], /by the field 99, which no schema/],
    ] as const) {
      const table = workshop.table({ schemas: [schema] })
      await table.data(rowsOf('a'), ids)
      await table.equality('select 1::integer as id', '{id: 1}', [...equalityIds], { sequence: 2n })
      await expect(table.rows()).rejects.toThrow(message)
    }
  })
})
