import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import {
  createTable,
  DuckDb,
  HadoopCatalog,
  JdbcCatalog,
  openTable,
  type InTransaction,
  type Table,
  type TransactionClient,
} from '../../src/index.ts'
import { field, filesBelow } from '../write/bed.ts'
import { buildAppend } from './tables.ts'

// A commit runs in a transaction that the caller begins and ends: its rows and the table change together, or neither.

let root: string
let database: TestDatabase
let pool: pg.Pool
let duckDb: DuckDb
let tables = 0
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-transaction-'))
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  pool.on('error', () => {})
  await pool.query('create table ledger (what text)')
  duckDb = await DuckDb.open({ threads: 1 })
})
afterAll(async () => {
  await duckDb.close()
  await pool.end()
  await database.drop()
  await rm(root, { recursive: true, force: true })
})

interface Hooks {
  before?: (client: TransactionClient) => Promise<unknown>
  after?: (client: TransactionClient) => Promise<unknown>
  /** Once it is committed. */
  committed?: () => Promise<unknown>
}

/** What an attempt's transaction does: a row of the caller, then the work. */
function inTransaction(what: string, { before, after, committed }: Hooks = {}): InTransaction {
  return async (work) => {
    const client = await pool.connect()
    try {
      await client.query('begin')
      await before?.(client)
      await client.query('insert into ledger values ($1)', [what])
      const result = await work(client)
      await after?.(client)
      await client.query('commit')
      await committed?.()
      return result
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    } finally {
      client.release()
    }
  }
}

async function ledger(what: string): Promise<number> {
  const { rows } = await pool.query<{ n: number }>('select count(*)::int as n from ledger where what = $1', [what])
  return rows[0]?.n ?? -1
}

async function newTable(on: pg.Pool = pool): Promise<{ table: Table; catalog: JdbcCatalog; name: string }> {
  const name = `t${(tables += 1)}`
  const catalog = await JdbcCatalog.open({ name: 'lake', database: on, warehouse: `file://${root}` })
  await catalog.createNamespace(['db']).catch(() => {})
  const schema = { fields: [field(1, 'id', { type: 'long' })] }
  const table = await createTable(catalog, { namespace: ['db'], name }, { schema }, { duckDb })
  return { table, catalog, name }
}

const rows = [{ id: 1n }, { id: 2n }]
const pause = async (): Promise<void> => {}
const snapshots = async ({ loaded }: Table, catalog: JdbcCatalog): Promise<number> =>
  (await catalog.loadTable(loaded.identifier)).metadata.snapshots.length

test('a commit and the rows of its transaction are there together', async () => {
  const { table, catalog, name } = await newTable()
  const seen: number[] = []
  const after = async (): Promise<void> => void seen.push(await snapshots(table, catalog), await ledger(name))
  const guard = async ({ transaction }: { transaction?: TransactionClient }): Promise<void> => {
    const mine = await transaction?.query('select from ledger where what = $1', [name])
    expect(mine?.rowCount).toBe(1)
  }
  await table.append(rows, { inTransaction: inTransaction(name, { after }), guard })
  expect(seen).toEqual([0, 0])
  expect(await snapshots(table, catalog)).toBe(1)
  expect(await ledger(name)).toBe(1)
})

test('a guard that refuses takes the whole transaction back', async () => {
  const { table, catalog, name } = await newTable()
  const before = await filesBelow(table)
  const guard = async (): Promise<void> => {
    throw new Error('the fence is lost')
  }
  await expect(table.append(rows, { inTransaction: inTransaction(name), guard })).rejects.toMatchObject({
    code: 'commit_refused',
  })
  expect(await snapshots(table, catalog)).toBe(0)
  expect(await ledger(name)).toBe(0)
  expect(await filesBelow(table)).toEqual(before)
})

test('a transaction that is not begun refuses the commit, and nothing is tried again', async () => {
  const { table, catalog, name } = await newTable()
  const before = await filesBelow(table)
  let begun = 0
  const refusing = inTransaction(name, {
    before: async () => {
      begun += 1
      throw new Error('the fence is lost')
    },
  })
  await expect(table.append(rows, { inTransaction: refusing, pause })).rejects.toMatchObject({ code: 'commit_refused' })
  const silent = (async () => undefined) as unknown as InTransaction
  await expect(table.append(rows, { inTransaction: silent, pause })).rejects.toMatchObject({ code: 'commit_refused' })
  expect(begun).toBe(1)
  expect(await snapshots(table, catalog)).toBe(0)
  expect(await filesBelow(table)).toEqual(before)
})

test('a row that another has locked makes a try fail, with its transaction; the next one is applied', async () => {
  const { table, catalog, name } = await newTable()
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query('select from iceberg_tables where table_name = $1 for update', [name])
    let tries = 0
    const before = async (client: TransactionClient): Promise<void> => {
      tries += 1
      await client.query(`set local lock_timeout = '50ms'`)
    }
    const release = async (): Promise<void> => void (await holder.query('rollback'))
    await table.append(rows, { inTransaction: inTransaction(name, { before }), pause: release })
    expect(tries).toBe(2)
  } finally {
    holder.release()
  }
  expect(await snapshots(table, catalog)).toBe(1)
  expect(await ledger(name)).toBe(1)
})

test('a transaction that is rolled back after the swap leaves the table as it was, and no file', async () => {
  const { table, catalog, name } = await newTable()
  const before = await filesBelow(table)
  const after = async (): Promise<void> => {
    throw new Error('the caller changed its mind')
  }
  await expect(table.append(rows, { inTransaction: inTransaction(name, { after }), pause })).rejects.toThrow(
    'the caller changed its mind',
  )
  expect(await snapshots(table, catalog)).toBe(0)
  expect(await ledger(name)).toBe(0)
  expect(await filesBelow(table)).toEqual(before)
})

const lost = async (): Promise<never> => {
  throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
}

test('a transaction that was committed, and whose answer was lost, is found to be applied', async () => {
  const { table, catalog, name } = await newTable()
  await table.append(rows, { inTransaction: inTransaction(name, { committed: lost }), pause })
  expect(await snapshots(table, catalog)).toBe(1)
  expect(await ledger(name)).toBe(1)
})

test('a transaction that tries its work again after a lost answer is found to be applied once', async () => {
  const { table, catalog, name } = await newTable()
  const once = inTransaction(name, { committed: lost })
  const twice: InTransaction = (work) => once(work).catch(() => inTransaction(name)(work))
  await table.append(rows, { inTransaction: twice, pause })
  expect(await snapshots(table, catalog)).toBe(1)
  expect(await ledger(name)).toBe(1)
})

test('a transaction whose end nobody can look at is unknown, and its files are kept', async () => {
  const own = new pg.Pool({ connectionString: database.url })
  const { table, name } = await newTable(own)
  const before = await filesBelow(table)
  const committed = async (): Promise<never> => {
    await own.end()
    return lost()
  }
  await expect(table.append(rows, { inTransaction: inTransaction(name, { committed }), pause })).rejects.toMatchObject({
    code: 'commit_unknown',
  })
  expect((await filesBelow(table)).length).toBeGreaterThan(before.length)
  const catalog = await JdbcCatalog.open({ name: 'lake', database: pool, warehouse: `file://${root}` })
  const again = await openTable(catalog, table.loaded.identifier, { duckDb })
  expect(again.metadata.snapshots).toHaveLength(1)
})

test('a commit that lost takes the rows of its transaction back', async () => {
  const { table, catalog, name } = await newTable()
  const request = { ...(await buildAppend(table.loaded)), inTransaction: inTransaction(name) }
  expect((await catalog.commit(table.loaded, await buildAppend(table.loaded))).outcome).toBe('applied')
  expect(await catalog.commit(table.loaded, request)).toMatchObject({ outcome: 'not_applied', why: 'conflict' })
  expect(await ledger(name)).toBe(0)
})

test('a catalog that is not in Postgres refuses a transaction', async () => {
  const catalog = new HadoopCatalog({ name: 'files', warehouse: `${root}/files` })
  await catalog.createNamespace(['db'])
  const schema = { fields: [field(1, 'id', { type: 'long' })] }
  const loaded = await catalog.createTable({ namespace: ['db'], name: 't' }, { schema })
  const request = { ...(await buildAppend(loaded)), inTransaction: inTransaction('none') }
  await expect(catalog.commit(loaded, request)).rejects.toMatchObject({ code: 'catalog_unsupported' })
})
