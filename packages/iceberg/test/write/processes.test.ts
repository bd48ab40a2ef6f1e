import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import {
  createTable,
  DuckDb,
  HadoopCatalog,
  JdbcCatalog,
  planFiles,
  scanRows,
  type Catalog,
  type FormatVersion,
  type Table,
} from '../../src/index.ts'
import { chainOf } from '../catalogs/tables.ts'
import { bundle, type Program } from '../commit/program.ts'
import { field } from './bed.ts'

const writers = 5
const rounds = 3
// Three in each round, and one more in every second.
const changes = 3 * rounds + Math.ceil(rounds / 2)
let database: TestDatabase
let program: Program
let duckDb: DuckDb
beforeAll(async () => {
  database = await createTestDatabase()
  program = await bundle(new URL('row-writer.ts', import.meta.url))
  duckDb = await DuckDb.open({ threads: 1 })
})
afterAll(async () => {
  await duckDb.close()
  await database.drop()
  await program.remove()
})

/** What a writer holds: its own rows, and the rows it has deleted from the file of all writers. */
interface Holding {
  ids: number[]
  positions: number[]
}

/** What a writer said: what it holds for certain, what it was about to, if it was killed there, and its snapshots. */
function reportOf(lines: readonly string[]) {
  let [held, next]: (Holding | undefined)[] = [{ ids: [], positions: [] }, undefined]
  const snapshots: string[] = []
  for (const line of lines.map((text) => JSON.parse(text) as Holding & { applied?: string })) {
    if (line.applied === undefined) next = line
    else {
      snapshots.push(line.applied)
      ;[held, next] = [next, undefined]
    }
  }
  return { may: [held, next].filter((holding) => holding !== undefined), snapshots }
}

const size = writers * rounds + 1
const properties = {
  'commit.retry.num-retries': '500',
  'commit.retry.min-wait-ms': '2',
  'commit.retry.max-wait-ms': '60',
}

async function sharedTable(catalog: Catalog, formatVersion: FormatVersion): Promise<{ table: Table; shared: string }> {
  await catalog.createNamespace(['db'])
  const schema = { fields: [field(1, 'id', { type: 'long' }), field(2, 'writer', { type: 'int' })] }
  const partitionSpec = {
    fields: [{ fieldId: 1000, sourceId: 2, name: 'writer', transform: { name: 'identity' } }],
  } as const
  const identifier = { namespace: ['db'], name: 't' }
  const table = await createTable(catalog, identifier, { schema, partitionSpec, formatVersion, properties }, { duckDb })
  await table.append(Array.from({ length: size }, (_, id) => ({ id: BigInt(id), writer: -1 })))
  for await (const [file] of planFiles(table.loaded)) return { table, shared: file?.file.filePath ?? '' }
  return { table, shared: '' }
}

async function holdings(table: Table): Promise<Holding[]> {
  const found = Array.from({ length: writers }, (): Holding => ({ ids: [], positions: [] }))
  const left = new Set<number>()
  const rowIds: unknown[] = []
  const metadataColumns = ['_row_id'] as const
  for await (const rows of scanRows(table.loaded, { duckDb, metadataColumns })) {
    for (const row of rows) {
      rowIds.push(row['_row_id'])
      if (row['writer'] === -1) left.add(Number(row['id']))
      else found[Number(row['writer'])]?.ids.push(Number(row['id']))
    }
  }
  for (let position = 0; position < size - 1; position += 1) {
    if (!left.has(position)) found[Math.floor(position / rounds)]?.positions.push(position)
  }
  expect(left.has(size - 1)).toBe(true)
  if (table.metadata.formatVersion === 3) expect(new Set(rowIds).size).toBe(rowIds.length)
  return found.map(({ ids, positions }) => ({ ids: ids.toSorted((a, b) => a - b), positions }))
}

async function expectAllThere(catalog: Catalog, formatVersion: FormatVersion, options: object): Promise<void> {
  const { table, shared } = await sharedTable(catalog, formatVersion)
  const reports = await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      const args = [JSON.stringify(options), String(writer), String(rounds), shared]
      let seen = 0
      // The first one is killed at work: what it was about to do is done, or not at all.
      const lines = await program.run(args, (_, child) => {
        seen += 1
        if (writer === 0 && seen === 7) child.kill('SIGKILL')
      })
      return reportOf(lines)
    }),
  )
  await table.refresh()
  const found = await holdings(table)
  for (const [writer, { may }] of reports.entries()) expect(may).toContainEqual(found[writer])
  for (const { may, snapshots } of reports.slice(1)) expect([may.length, snapshots.length]).toEqual([1, changes])
  const [, ...chain] = chainOf(table.loaded).map(String).toReversed()
  const reported = reports.flatMap(({ snapshots }) => snapshots)
  expect(chain).toEqual(expect.arrayContaining(reported))
  expect(chain.length - reported.length).toBe(JSON.stringify(found[0]) === JSON.stringify(reports[0]?.may[0]) ? 0 : 1)
}

test('rows that many processes write and delete are all there in a JDBC catalog', { timeout: 150_000 }, async () => {
  const options = { kind: 'jdbc', name: 'lake', warehouse: `${program.folder}/jdbc`, database: database.url }
  const catalog = await JdbcCatalog.open(options)
  await expectAllThere(catalog, 3, options)
  await catalog.close()
})

test('rows that many processes write and delete are all there in a file system', { timeout: 150_000 }, async () => {
  for (const formatVersion of [2, 3] as const) {
    const options = { kind: 'hadoop', name: 'files', warehouse: `${program.folder}/hadoop-v${formatVersion}` }
    await expectAllThere(new HadoopCatalog(options), formatVersion, options)
  }
})
