import { mkdir, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { DuckDb, JdbcCatalog, openTable, type Table } from '../../src/index.ts'
import { startEngines, type Engines, type ReadTable, type Row } from './engines.ts'
import { placeGolden, readGolden } from './golden-files.ts'
import { createDatabase, jdbcProperties } from './jdbc-database.ts'
import { sorted } from './same-rows.ts'
import { closedAfterAll } from './server-process.ts'
import { actions, type ActionName } from './twin-actions.ts'

// Twins of a table that others wrote: Spark's procedure maintains one, and our action the other. They must end alike,
// and Spark and PyIceberg must read ours. Twins have the same paths, so they exist one after the other.

const opened = closedAfterAll()
let engines: Engines
let duckDb: DuckDb
let catalog: JdbcCatalog
let twins = 0

beforeAll(async () => {
  const url = await createDatabase('twins')
  const warehouse = '/tmp/fencepost-goldens'
  catalog = opened(await JdbcCatalog.open({ name: 'twins', database: url.href, warehouse }))
  duckDb = opened(await DuckDb.open({ threads: 1 }))
  engines = opened(startEngines())
  const { spark, pyiceberg } = jdbcProperties(url)
  await engines.catalog('twins', { spark: { ...spark, warehouse }, pyiceberg: { ...pyiceberg, warehouse } })
  await catalog.createNamespace(['ns'])
})

/** What is compared of a table after an action. */
interface Ended {
  readonly output: readonly Row[]
  readonly read: ReadTable
  readonly files: readonly Row[]
}

/** A golden with an orphan in its folder, under a name of its own in the catalog. */
async function withTwin<T>(golden: string, work: (name: string) => Promise<T>): Promise<T> {
  const { location, metadata } = await readGolden(golden)
  const remove = await placeGolden(golden)
  const name = `t${(twins += 1)}`
  try {
    const orphan = join(location, 'data/orphan.parquet')
    await mkdir(dirname(orphan), { recursive: true })
    await writeFile(orphan, 'nobody knows it')
    await utimes(orphan, 1, 1)
    await catalog.registerTable({ namespace: ['ns'], name }, join(location, metadata))
    return await work(name)
  } finally {
    await catalog.dropTable({ namespace: ['ns'], name }).catch(() => {})
    await remove()
  }
}

async function ended(name: string, output: readonly Row[]): Promise<Ended> {
  const read = await engines.read('spark', { catalog: 'twins', table: `ns.${name}` })
  const files = await engines.sql(
    `select content, spec_id, count(*) as files, sum(record_count) as rows from twins.ns.${name}.files
      group by content, spec_id order by content, spec_id`,
  )
  return { output, read, files }
}

/** The rows now, and those of every snapshot that was there before. */
function rowsOf({ read }: Ended, known: readonly string[]): unknown {
  const snapshots = known.flatMap((id) => {
    const at = read.snapshots[id]
    return at === undefined ? [] : [[id, sorted(at.rows)]]
  })
  const refs = Object.entries(read.refs).map(([ref, { rows }]) => [ref, sorted(rows)])
  return { now: sorted(read.rows), refs, snapshots }
}

function dataFilesOf({ files }: Ended): readonly Row[] {
  return files.filter((row) => row['content'] === 0)
}

/** Spark leaves position deletes behind that name nothing but removed files; we take them along. */
function deleteFilesOf({ files }: Ended): number {
  return files.filter((row) => row['content'] !== 0).reduce((sum, row) => sum + Number(row['files']), 0)
}

const cases = Object.entries(actions).flatMap(([name, { goldens }]) =>
  goldens.map((golden) => [name as ActionName, golden] as const),
)

test.each(cases)('%s does to the golden table %s what Spark does', async (name, golden) => {
  const action = actions[name]
  const { read_by, agreed_by, snapshots } = await readGolden(golden)
  const known = Object.keys(snapshots)
  const theirs = await withTwin(golden, async (twin) => {
    return await ended(twin, await engines.sql(action.call(`ns.${twin}`)))
  })
  await withTwin(golden, async (twin) => {
    const table: Table = await openTable(catalog, { namespace: ['ns'], name: twin }, { duckDb })
    const output = await action.run(table.loaded, catalog)
    await table.refresh()
    const ours = await ended(twin, output)
    expect(rowsOf(ours, known)).toEqual(rowsOf(theirs, known))
    expect(dataFilesOf(ours)).toEqual(dataFilesOf(theirs))
    expect(deleteFilesOf(ours)).toBeLessThanOrEqual(deleteFilesOf(theirs))
    expect(Object.keys(ours.read.snapshots)).toHaveLength(Object.keys(theirs.read.snapshots).length)
    expect(action.compared(ours.output)).toEqual(action.compared(theirs.output))
    if (![read_by, ...agreed_by].includes('pyiceberg')) return
    const read = await engines.read('pyiceberg', { catalog: 'twins', table: `ns.${twin}` })
    expect(sorted(read.rows), 'pyiceberg').toEqual(sorted(ours.read.rows))
    for (const [id, { rows }] of Object.entries(ours.read.snapshots)) {
      expect(sorted(read.snapshots[id]?.rows ?? []), `pyiceberg, snapshot ${id}`).toEqual(sorted(rows))
    }
  })
})
