import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DuckDb } from '../../parquet/duckdb.ts'
import type { Field, Type } from '../../schema/type.ts'
import { temporaryFolder } from '../../storage/temporary-folder.ts'
import { assertSameRows, RowTallies, tallyOf, type RowTally } from './proof.ts'

let duckdb: DuckDb
let tallies: RowTallies
let folder: string
beforeAll(async () => {
  duckdb = await DuckDb.open({ threads: 2 })
  tallies = await RowTallies.on(duckdb)
  folder = await temporaryFolder('proof')
})
afterAll(async () => {
  await duckdb.close()
  await rm(folder, { recursive: true, force: true })
})

const column = (type: Type): Field[] => [
  { id: 1, name: 'n', required: false, type: { type: 'long' } },
  { id: 2, name: 'c', required: false, type },
]
const list: Type = { type: 'list', elementId: 3, element: { type: 'double' }, elementRequired: false }

/** What is counted on the way into a file, and what is read from it. */
async function both(fields: readonly Field[], select: string, withHashes = true): Promise<[RowTally, RowTally]> {
  const tally = tallies.open()
  const path = join(folder, `${tally}.parquet`)
  const sql = tallies.counted(tally, fields, select, withHashes)
  return await duckdb.using(async (connection) => {
    await connection.run(`copy (${sql}) to '${path}' (format parquet, dictionary_size_limit 0)`)
    return [tallies.close(tally), await tallyOf(connection, path, fields, withHashes)]
  })
}

test.each([
  ['zeros, NaN and null', { type: 'double' }, `unnest(['0.0', '-0.0', 'nan', null, '1e300'])::double`],
  [
    'times',
    { type: 'timestamptz' },
    `unnest([null, '1969-12-31 23:59:59.999999+00', '2026-01-01 00:00:00+00'])::timestamptz`,
  ],
  ['lists', list, `unnest([null, [], [null], ['-0.0'], ['0.0']])::double[]`],
] as [string, Type, string][])('what is written is what was read: %s', async (_, type, values) => {
  const select = `select range::bigint as n, c from range(3000), (select ${values} as c)`
  const [read, written] = await both(column(type), select)
  expect(written).toEqual(read)
  expect(read.rows % 3000n).toBe(0n)
  expect(read.rows).toBeGreaterThan(3000n)
})

test.each([
  ['the sign of a zero', { type: 'double' }, '0.0::double', '-0.0::double'],
  ['null and an empty list', list, 'null::double[]', '[]::double[]'],
  ['an empty list and one of a null', list, '[]::double[]', '[null]::double[]'],
  ['a zero inside a list', list, "['0.0']::double[]", "['-0.0']::double[]"],
  ['a microsecond', { type: 'timestamp' }, `timestamp '2026-01-01'`, `timestamp '2026-01-01 00:00:00.000001'`],
] as [string, Type, string, string][])(
  'a file that differs in one value is refused: %s',
  async (_, type, one, other) => {
    const [first] = await both(column(type), `select 1::bigint as n, ${one} as c`)
    const [, second] = await both(column(type), `select 1::bigint as n, ${other} as c`)
    expect(() => assertSameRows(first, second, { table: 't', file: 'f' })).toThrow(
      expect.objectContaining({ code: 'proof_failed', details: expect.objectContaining({ table: 't', file: 'f' }) }),
    )
  },
)

test('a file with a row too few, and one with a row twice in the place of another, are refused', async () => {
  const fields = column({ type: 'string' })
  const [read] = await both(fields, `select unnest([1, 2, 3])::bigint as n, 'a' as c`)
  for (const rows of ['[1, 2]', '[1, 2, 2]', '[1, 1, 1]']) {
    const [, written] = await both(fields, `select unnest(${rows})::bigint as n, 'a' as c`)
    expect(() => assertSameRows(read, written, { table: 't', file: 'f' })).toThrow('f was written for t')
  }
  const [, shuffled] = await both(fields, `select unnest([3, 1, 2])::bigint as n, 'a' as c`)
  assertSameRows(read, shuffled, { table: 't', file: 'f' })
})

test('counts alone do not look at values', async () => {
  const fields = column({ type: 'long' })
  const [read] = await both(fields, 'select 1::bigint as n, 2::bigint as c', false)
  const [, written] = await both(fields, 'select 3::bigint as n, 4::bigint as c', false)
  assertSameRows(read, written, { table: 't', file: 'f' })
})
