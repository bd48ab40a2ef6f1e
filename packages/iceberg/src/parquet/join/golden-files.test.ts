import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DuckDBConnection } from '@duckdb/node-api'
import { decompress } from 'fzstd'
import { parquetReadObjects } from 'hyparquet'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LocalStorage } from '../../storage/local-storage.ts'
import { DuckDb } from '../duckdb.ts'
import { joinFiles } from './join-files.ts'
import { joinable, type JoinInput } from './joinable.ts'
import { readWholeFooter } from './whole-footer.ts'

// The files of tables that Spark, Iceberg's Java API and PyIceberg wrote, joined and read again.

const goldens = fileURLToPath(new URL('../../../test/goldens', import.meta.url))
const storage = new LocalStorage()
let folder: string
let duckdb: DuckDb
let connection: DuckDBConnection

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-join-goldens-'))
  duckdb = await DuckDb.open({ threads: 1 })
  connection = await duckdb.connect()
})
afterAll(async () => {
  await duckdb.close()
  await rm(folder, { recursive: true, force: true })
})

async function inputsOf(table: string): Promise<JoinInput[]> {
  const names = await readdir(join(goldens, table), { recursive: true })
  const inputs: JoinInput[] = []
  for (const name of names.filter((each) => each.endsWith('.parquet')).toSorted()) {
    const path = join(goldens, table, name)
    const size = await storage.size(path)
    const footer = await readWholeFooter({ location: path, size, read: (range) => storage.read(path, range) })
    const file = { recordCount: footer.rowCount, filePath: path, fileSizeInBytes: size, specId: 0, partition: [] }
    inputs.push({ footer, entry: { file: { ...file, content: 'data', fileFormat: 'parquet' }, sequenceNumber: 1n } })
  }
  return inputs
}

/** The rows as DuckDB reads them, or why it cannot. */
async function rowsOf(paths: readonly string[]): Promise<unknown> {
  const list = paths.map((path) => `'${path}'`).join(', ')
  try {
    return (
      await connection.runAndReadAll(`select * from read_parquet([${list}], hive_partitioning = false)`)
    ).getRowsJson()
  } catch (error) {
    return (error as Error).message.split('\n')[0]?.replace(/"[^"]*"/g, '')
  }
}

async function readByPages(path: string): Promise<void> {
  const bytes = await readFile(path)
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)
  const options = { file, compressors: { ZSTD: (input: Uint8Array) => decompress(input) } }
  const all = await parquetReadObjects(options)
  for (let rowStart = 0; rowStart < all.length; rowStart += Math.ceil(all.length / 4)) {
    const window = { rowStart, rowEnd: rowStart + 1, useOffsetIndex: true }
    expect(await parquetReadObjects({ ...options, ...window })).toEqual(all.slice(rowStart, rowStart + 1))
  }
}

const tables = readdirSync(goldens).filter((name) => name !== 'README.md')

/** What was joined in each table. */
const joined: string[] = []

test.each(tables)('the files of the golden table %s are joined without a change of a row', async (table) => {
  const { sets, refused } = joinable(await inputsOf(table), { minRowGroupBytes: 0 })
  expect(refused.filter(({ reason }) => reason !== 'alone')).toEqual([])
  for (const inputs of sets) {
    const output = join(folder, `${table}-${joined.length}.parquet`)
    await joinFiles({ inputs, output, storage, schema: { fields: [] } })
    expect(await rowsOf([output])).toEqual(await rowsOf(inputs.map(({ footer }) => footer.location)))
    const chunks = inputs.flatMap(({ footer }) => footer.groups.flatMap((group) => group.chunks))
    const hasIndexes = chunks.every((chunk) => chunk.offsetIndex !== undefined)
    if (hasIndexes && table !== 'codecs') await readByPages(output)
    joined.push(`${table}: ${inputs.length}${hasIndexes ? ' with page indexes' : ''}`)
  }
})

test('most golden tables have files to be joined, and most of those have page indexes', () => {
  expect(joined.length).toBeGreaterThan(30)
  expect(joined.filter((each) => each.endsWith('with page indexes')).length).toBeGreaterThan(20)
})
