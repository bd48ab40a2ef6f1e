import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import {
  commitTable,
  HadoopCatalog,
  JdbcCatalog,
  LocalStorage,
  type Catalog,
  type CommitOutcome,
  type TableIdentifier,
} from '../../src/index.ts'
import { buildAppend, chainOf, newTable } from '../catalogs/tables.ts'
import { Fault, faultyPool, faultyStorage, type FaultMode } from './faults.ts'

let root: string
let database: TestDatabase
let pool: pg.Pool
let count = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-faults-'))
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  pool.on('error', () => {})
})
afterAll(async () => {
  await pool.end()
  await database.drop()
  await rm(root, { recursive: true, force: true })
})

interface Bed {
  sound: Catalog
  faulty: Catalog
}

const local = new LocalStorage()
const kinds: Record<string, (fault: Fault) => Promise<Bed>> = {
  'a file system catalog': async (fault) => {
    const warehouse = `${root}/h${(count += 1)}`
    const open = (storage = local as Parameters<typeof faultyStorage>[0]) =>
      new HadoopCatalog({ name: 'files', warehouse, storage })
    return { sound: open(), faulty: open(faultyStorage(local, fault)) }
  },
  'a JDBC catalog': async (fault) => {
    const options = { name: `c${(count += 1)}`, warehouse: `${root}/j${count}` }
    const sound = await JdbcCatalog.open({ ...options, database: pool, storage: local })
    // Opened with the fault not armed yet: what is counted begins with the commit.
    const faulty = await JdbcCatalog.open({
      ...options,
      database: faultyPool(pool, fault),
      storage: faultyStorage(local, fault),
    })
    return { sound, faulty }
  },
}

const table: TableIdentifier = { namespace: ['db'], name: 't' }
const none = new Fault(Number.POSITIVE_INFINITY, 'before')

/** One commit that meets another on its way, with the n-th call failing; then what is there is compared with the outcome. */
async function commitWithFault(
  kind: string,
  at: number,
  mode: FaultMode,
): Promise<{ reached: boolean; outcome: string }> {
  let armed = none
  const fault = { call: (...args: Parameters<Fault['call']>) => armed.call(...args) } as Fault
  const { sound, faulty } = await (kinds[kind] ?? kinds['a JDBC catalog'] ?? expect.fail())(fault)
  await sound.createNamespace(table.namespace)
  const first = await sound.createTable(table, newTable)
  await sound.commit(first, await buildAppend(first, 'first'))
  armed = new Fault(at, mode)
  const ours: { snapshotId: bigint; file: string }[] = []
  let outcome: CommitOutcome | undefined
  try {
    outcome = await commitTable(
      faulty,
      table,
      async (loaded, attempt) => {
        const built = await buildAppend({ ...loaded, storage: local }, 'ours')
        ours.push({ snapshotId: built.snapshotId, file: built.files[0] ?? '' })
        if (attempt === 1) {
          const now = await sound.loadTable(table)
          await sound.commit(now, await buildAppend(now, 'theirs'))
        }
        return built
      },
      { pause: async () => {} },
    )
  } catch {
    // A load that fails for good: nothing was sent after it.
  }
  await check(sound, outcome, ours)
  return { reached: armed.reached, outcome: outcome?.outcome ?? 'thrown' }
}

async function check(sound: Catalog, outcome: CommitOutcome | undefined, ours: { snapshotId: bigint; file: string }[]) {
  const now = await sound.loadTable(table)
  const chain = chainOf(now)
  expect(chain).toHaveLength(now.metadata.snapshots.length)
  // T3: whatever was interrupted, everything the table refers to is there.
  for (const snapshot of now.metadata.snapshots) expect(await local.exists(snapshot.manifestList ?? '')).toBe(true)
  const applied = ours.filter(({ snapshotId }) => chain.includes(snapshotId))
  const notes = now.metadata.snapshots.map((s) => s.summary?.['note'])
  expect(notes.filter((note) => note === 'first')).toHaveLength(1)
  expect(applied.length).toBeLessThanOrEqual(1)
  if (outcome?.outcome === 'applied') expect(applied).toHaveLength(1)
  if (outcome?.outcome === 'not_applied' || outcome === undefined) expect(applied).toEqual([])
  if (outcome?.outcome === 'unknown') {
    expect(ours.length).toBeGreaterThan(0)
    for (const file of outcome.files) expect(await local.exists(file)).toBe(true)
  }
}

const modes: FaultMode[] = ['before', 'after', 'down']
describe.each(Object.keys(kinds))('a commit to %s', (kind) => {
  test.each(modes)('tells what became of it when any one call fails (%s)', async (mode) => {
    const outcomes: Record<string, number> = {}
    let at = 1
    for (let reached = true; reached; at++) {
      const one = await commitWithFault(kind, at, mode)
      reached = one.reached
      outcomes[one.outcome] = (outcomes[one.outcome] ?? 0) + 1
    }
    // Fewer calls than this, and the faults did not reach the commit.
    expect(at).toBeGreaterThan(10)
    expect(outcomes['applied']).toBeGreaterThan(0)
    if (mode !== 'down') expect(outcomes).toEqual({ applied: at - 1 })
  })
})

describe.each(Object.keys(kinds))('a table that is created in %s', (kind) => {
  test.each(modes)('is there and whole, or not there, when any one call fails (%s)', async (mode) => {
    for (let [at, reached] = [1, true]; reached; at++) {
      let armed = none
      const fault = { call: (...args: Parameters<Fault['call']>) => armed.call(...args) } as Fault
      const { sound, faulty } = await (kinds[kind] ?? expect.fail())(fault)
      await sound.createNamespace(table.namespace)
      armed = new Fault(at, mode)
      const made = await faulty.createTable(table, newTable).catch(() => undefined)
      reached = armed.reached
      const found = await sound.loadTable(table).catch((error: unknown) => error)
      if (made === undefined && found instanceof Error) expect(found).toMatchObject({ code: 'table_not_found' })
      else expect(found).toMatchObject({ metadata: { snapshots: [] } })
    }
  })
})
