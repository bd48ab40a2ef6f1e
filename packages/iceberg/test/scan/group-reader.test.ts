import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  planContext,
  planFiles,
  TableReader,
  type Field,
  type ScanFile,
  type ScannedTable,
  type Selection,
} from '../../src/index.ts'
import { CopiedStorage, optional, Workshop, type HandMadeTable } from './hand-made-table.ts'

let workshop: Workshop
beforeAll(async () => {
  workshop = await Workshop.open()
})
afterAll(async () => {
  await workshop.close()
})

const spec = {
  specId: 0,
  fields: [{ fieldId: 1000, sourceId: 2, name: 'p', transform: { name: 'identity' } }],
} as const
const before: Field[] = [optional(1, 'id', 'int'), optional(2, 'p', 'string'), optional(3, 'v', 'int')]
const now: Field[] = [optional(1, 'id', 'long'), optional(2, 'p', 'string'), optional(4, 'w', 'int')]
const metadataColumns = ['_file', '_pos', '_row_id', '_last_updated_sequence_number'] as const

async function planned(table: ScannedTable): Promise<ScanFile[]> {
  const files: ScanFile[] = []
  for await (const batch of planFiles(table)) files.push(...batch)
  return files
}

/** The rows of the groups and those of the files one by one, in the order of their texts, and the groups' sizes. */
async function bothWays(made: HandMadeTable, selection: Partial<Selection> = {}) {
  const table = await made.build()
  const context = planContext(table.metadata, {})
  const { duckDb, staging } = workshop
  const reader = await TableReader.open(table, context, { duckDb, staging })
  const rowsOf = async (sql: string): Promise<string[]> => {
    const read = await reader.connection.runAndReadAll(sql)
    return read.getRowObjectsJson().map((row) => JSON.stringify(row))
  }
  try {
    const files = await planned(table)
    const wanted: Selection = { fields: context.schema.fields, metadataColumns, ...selection }
    const groups = await reader.selectGroups(files, wanted)
    const together: string[] = []
    for (const group of groups) together.push(...(await rowsOf(group.sql)))
    for (const group of groups) await group.release()
    const apart: string[] = []
    for (const file of files) {
      const selected = await reader.select(file, wanted)
      apart.push(...(await rowsOf(selected.sql)))
      await selected.release()
    }
    const tables = await rowsOf(`select table_name from duckdb_tables() where table_name like 'group_%'`)
    expect(tables).toEqual([])
    return { together: together.toSorted(), apart: apart.toSorted(), sizes: groups.map((group) => group.files.length) }
  } finally {
    await reader.close()
  }
}

const ids = '{id: 1, p: 2, v: 3}'
const inPartition = (p: string | null, sequence: bigint) => ({ partition: [p], sequence })

test('files of equal columns are read as one, with their paths, positions and row ids', async () => {
  const table = workshop.table({ schemas: [before, now], specs: [spec], formatVersion: 3 })
  for (let n = 0; n < 4; n += 1) {
    await table.data(`select (${n} * 10 + range)::int as id, 'a' as p, 0 as v from range(3)`, ids, inPartition('a', 5n))
  }
  await table.data(`select 99::bigint as id, 'b' as p, 7 as w`, '{id: 1, p: 2, w: 4}', inPartition('b', 6n))
  const lineage = '{id: 1, p: 2, v: 3, _row_id: 2147483540, _last_updated_sequence_number: 2147483539}'
  await table.data(
    `select 50 as id, 'b' as p, 0 as v, 12::bigint as _row_id, null::bigint as _last_updated_sequence_number`,
    lineage,
    inPartition('b', 7n),
  )
  const { together, apart, sizes } = await bothWays(table)
  expect(together).toEqual(apart)
  expect(together).toHaveLength(14)
  expect(sizes).toEqual([4, 1, 1])
})

test('deletes of every kind apply to the files they are for, and to no others', async () => {
  const table = workshop.table({ schemas: [before, now], specs: [spec], formatVersion: 2 })
  const paths: string[] = []
  for (let n = 0; n < 6; n += 1) {
    const p = n < 4 ? 'a' : 'b'
    const select = `select range::int as id, '${p}' as p, 0 as v from range(10)`
    paths.push(await table.data(select, ids, inPartition(p, BigInt(n + 1))))
  }
  const [first = '', second = '', third = '', fourth = '', fifth = ''] = paths
  await table.positions([[first, 0], [second, 1], [fourth, 2], [fifth, 3]], inPartition('a', 3n)) // prettier-ignore
  await table.positions([[third, 4]], { ...inPartition('b', 3n), file: { referencedDataFile: third } })
  await table.equality('select 5 as id', '{id: 1}', [1], inPartition('a', 3n))
  await table.equality('select 6 as id', '{id: 1}', [1], inPartition('b', 6n))
  await table.equality('select 7 as id, null::int as v', '{id: 1, v: 3}', [1, 3], inPartition('a', 9n))
  const { together, apart, sizes } = await bothWays(table)
  expect(together).toEqual(apart)
  expect(together).toHaveLength(60 - 3 - 2 - 1)
  expect(sizes).toEqual([4, 1, 1])
})

test('vectors apply in place of position deletes, each to its own file', async () => {
  const table = workshop.table({ schemas: [before], specs: [spec], formatVersion: 3 })
  const select = `select range::int as id, 'a' as p, 0 as v from range(10)`
  const paths: string[] = []
  for (let n = 0; n < 12; n += 1) paths.push(await table.data(select, ids, inPartition('a', 1n)))
  for (const [n, path] of paths.entries()) if (n > 0) await table.vector(path, [n % 9, 9], inPartition('a', 2n))
  const rows = [paths[0], paths[1]].map((path = '') => [path, 5] as const)
  await table.positions(rows, inPartition('a', 2n))
  const { together, apart, sizes } = await bothWays(table, { fields: [] })
  expect(together).toEqual(apart)
  expect(together).toHaveLength(120 - 11 * 2 - 1)
  expect(sizes).toEqual([12])
})

test('values that only partitions have keep files of other partitions apart', async () => {
  const table = workshop.table({ schemas: [before], specs: [spec] })
  for (const p of ['a', 'b', 'a']) await table.data('select 1 as id, 2 as v', '{id: 1, v: 3}', inPartition(p, 1n))
  const { together, apart, sizes } = await bothWays(table)
  expect(together).toEqual(apart)
  expect(sizes).toEqual([2, 1])
})

test('deletes and data that fit the staging folder one after the other are not held there together', async () => {
  const table = workshop.table({ schemas: [before], specs: [spec] })
  const paths: string[] = []
  for (let n = 0; n < 3; n += 1) {
    const select = `select range::int as id, 'a' as p, 0 as v from range(${n === 0 ? 20_000 : 10})`
    paths.push(await table.data(select, ids, inPartition('a', 1n)))
  }
  const [first = '', second = ''] = paths
  await table.positions([[first, 0], [second, 1]], inPartition('a', 2n)) // prettier-ignore
  await table.equality('select range::int as id from range(5000, 10000)', '{id: 1}', [1], inPartition('a', 3n))
  const { metadata } = await table.build()
  const made = { metadata, storage: new CopiedStorage() }
  const files = await planned(made)
  const maxBytes = files.reduce((sum, { file }) => sum + file.fileSizeInBytes, 0)
  const context = planContext(metadata, {})
  const reader = await TableReader.open(made, context, { duckDb: workshop.duckDb, staging: { maxBytes } })
  try {
    const groups = await reader.selectGroups(files, { fields: context.schema.fields, metadataColumns: [] })
    const all = groups.map(({ sql }) => sql).join(' union all ')
    const read = await reader.connection.runAndReadAll(`select count(*)::int from (${all})`)
    expect(read.getRows()).toEqual([[20_020 - 2 - 5000]])
    for (const group of groups) await group.release()
  } finally {
    await reader.close()
  }
})

test('no files are no groups', async () => {
  expect((await bothWays(workshop.table({ schemas: [before], specs: [spec] }))).sizes).toEqual([])
})

test('files that store a column as different types of integers are not read as one', async () => {
  const table = workshop.table({ schemas: [before], specs: [spec] })
  for (const type of ['tinyint', 'smallint', 'int', 'int']) {
    const id = { tinyint: 100, smallint: 30_000 }[type] ?? 2_000_000_000
    await table.data(`select ${id}::${type} as id, 'a' as p, 0 as v`, ids, inPartition('a', 5n))
  }
  const { together, apart, sizes } = await bothWays(table, { metadataColumns: [] })
  expect(together).toEqual(apart)
  expect(sizes).toEqual([1, 1, 2])
})
