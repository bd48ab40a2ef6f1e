import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DuckDBConnection } from '@duckdb/node-api'
import { parquetMetadata, type SchemaElement } from 'hyparquet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DuckDb } from './duckdb.ts'
import { leaveIntegersPlain } from './plain-integers.ts'

let folder: string
let duckdb: DuckDb
let connection: DuckDBConnection
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-integers-'))
  duckdb = await DuckDb.open()
  connection = await duckdb.connect()
})
afterAll(async () => {
  await duckdb.close()
  await rm(folder, { recursive: true, force: true })
})

const select = `
  select n::integer as i, n::bigint as l, n::smallint as s, date '2026-01-01' + n::integer as d, n::decimal(9, 2) as c,
         'text ' || n as t, [n::integer, null] as many, {'a': n::integer, 'b': {'deep': n::bigint}} as nested,
         map {n::varchar: n::integer} as named, n % 2 = 0 as even
    from range(5000) r (n)`

async function written(name: string): Promise<string> {
  const path = join(folder, name)
  const ids = `field_ids {i: 1, l: 2, many: {__duckdb_field_id: 300, element: 301}}`
  await connection.run(`copy (${select}) to '${path}' (format parquet, row_group_size 2048, ${ids})`)
  return path
}

async function elementsOf(path: string): Promise<SchemaElement[]> {
  const bytes = await readFile(path)
  const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  return parquetMetadata(buffer).schema
}

const rowsOf = async (path: string) => {
  const reader = await connection.runAndReadAll(`select * from '${path}'`)
  return { types: reader.columnTypes().map(String), rows: reader.getRowObjectsJson() }
}

test('integers say nothing but their physical type; everything else of the file stays', async () => {
  const path = await written('integers.parquet')
  const before = { elements: await elementsOf(path), ...(await rowsOf(path)), size: (await readFile(path)).length }
  await leaveIntegersPlain(path)
  const elements = await elementsOf(path)
  const said = (name: string) => elements.filter((element) => element.name === name)
  for (const name of ['i', 'l', 'element', 'a', 'deep', 'value']) {
    expect(said(name)).toMatchObject([{ type: expect.stringMatching(/^INT(32|64)$/) }])
    expect(said(name)[0]).not.toHaveProperty('converted_type', expect.anything())
    expect(said(name)[0]).not.toHaveProperty('logical_type', expect.anything())
  }
  expect(said('c')[0]?.converted_type).toBe('DECIMAL')
  expect(said('s')[0]?.converted_type).toBe('INT_16')
  expect(said('d')[0]?.converted_type).toBe('DATE')
  const bare = ({ converted_type: _, logical_type: __, ...rest }: SchemaElement) => rest
  expect(elements.map(bare)).toEqual(before.elements.map(bare))
  expect(await rowsOf(path)).toEqual({ types: before.types, rows: before.rows })
  expect((await readFile(path)).length).toBeLessThan(before.size)
})

test('a second time changes nothing', async () => {
  const path = await written('twice.parquet')
  await leaveIntegersPlain(path)
  const once = await readFile(path)
  await leaveIntegersPlain(path)
  expect((await readFile(path)).equals(once)).toBe(true)
})

test('what is not Parquet is refused, and left as it is', async () => {
  const path = join(folder, 'not.parquet')
  await writeFile(path, 'this is not a Parquet file')
  await expect(leaveIntegersPlain(path)).rejects.toMatchObject({ code: 'parquet_invalid' })
  expect(await readFile(path, 'utf8')).toBe('this is not a Parquet file')
})
