import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../engine/test/database.ts'
import {
  JdbcCatalog,
  type JdbcLayout,
  type LoadedTable,
  type TableIdentifier,
  type TransactionClient,
} from '../../src/index.ts'
import { catalogConformance } from './conformance.ts'
import { buildAppend, newTable } from './tables.ts'

let root: string
const databases: Record<JdbcLayout, TestDatabase | undefined> = { V0: undefined, V1: undefined }
const pools: Partial<Record<JdbcLayout, pg.Pool>> = {}
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'fencepost-jdbc-'))
  for (const layout of ['V0', 'V1'] as const) {
    const database = await createTestDatabase()
    databases[layout] = database
    pools[layout] = new pg.Pool({ connectionString: database.url })
  }
})
afterAll(async () => {
  for (const layout of ['V0', 'V1'] as const) {
    await pools[layout]?.end()
    await databases[layout]?.drop()
  }
  await rm(root, { recursive: true, force: true })
})

function poolOf(layout: JdbcLayout): pg.Pool {
  const pool = pools[layout]
  if (pool === undefined) throw new Error('no pool')
  return pool
}

const open = (layout: JdbcLayout, name = 'lake'): Promise<JdbcCatalog> =>
  JdbcCatalog.open({ name, database: poolOf(layout), warehouse: `file://${root}/${layout}`, createLayout: layout })

let tables = 0
async function created(catalog: JdbcCatalog): Promise<LoadedTable> {
  const identifier: TableIdentifier = { namespace: [`db${(tables += 1)}`], name: 't' }
  await catalog.createNamespace(identifier.namespace)
  return catalog.createTable(identifier, newTable)
}

async function metadataFiles({ metadata }: LoadedTable): Promise<string[]> {
  const names = await readdir(`${metadata.location.replace('file://', '')}/metadata`)
  return names.filter((name) => name.endsWith('.metadata.json')).toSorted()
}

for (const layout of ['V0', 'V1'] as const) {
  catalogConformance(`A JDBC catalog of layout ${layout}`, async () => ({ catalog: await open(layout) }))

  describe(`a JDBC catalog of layout ${layout}`, () => {
    test('has the columns that other engines expect', async () => {
      const catalog = await open(layout)
      expect(catalog.layout).toBe(layout)
      const { rows } = await poolOf(layout).query(
        `select table_name, column_name, character_maximum_length as length, is_nullable
           from information_schema.columns where table_name like 'iceberg%' order by table_name, ordinal_position`,
      )
      expect(rows.map((r) => `${r.table_name}.${r.column_name} ${r.length} ${r.is_nullable}`)).toEqual([
        'iceberg_namespace_properties.catalog_name 255 NO',
        'iceberg_namespace_properties.namespace 255 NO',
        'iceberg_namespace_properties.property_key 255 NO',
        'iceberg_namespace_properties.property_value 1000 YES',
        'iceberg_tables.catalog_name 255 NO',
        'iceberg_tables.table_namespace 255 NO',
        'iceberg_tables.table_name 255 NO',
        'iceberg_tables.metadata_location 1000 YES',
        'iceberg_tables.previous_metadata_location 1000 YES',
        ...(layout === 'V1' ? ['iceberg_tables.iceberg_type 5 YES'] : []),
      ])
    })

    test('names its metadata files by their number, and remembers the one before', async () => {
      const catalog = await open(layout)
      const table = await created(catalog)
      const result = await catalog.commit(table, await buildAppend(table))
      expect(await metadataFiles(table)).toEqual([
        expect.stringMatching(/^00000-[0-9a-f-]{36}\.metadata\.json$/),
        expect.stringMatching(/^00001-[0-9a-f-]{36}\.metadata\.json$/),
      ])
      const { rows } = await poolOf(layout).query('select * from iceberg_tables where table_namespace = $1', [
        table.identifier.namespace[0],
      ])
      expect(rows[0].previous_metadata_location).toBe(table.metadataLocation)
      expect(result).toMatchObject({ table: { metadataLocation: rows[0].metadata_location } })
      if (layout === 'V1') expect(rows[0].iceberg_type).toBe('TABLE')
    })

    test('a commit that lost leaves no metadata file', async () => {
      const catalog = await open(layout)
      const table = await created(catalog)
      await catalog.commit(table, await buildAppend(table))
      expect(await catalog.commit(table, await buildAppend(table))).toMatchObject({ why: 'conflict' })
      expect(await metadataFiles(table)).toHaveLength(2)
    })

    test('catalogs of other names in the same database are not seen', async () => {
      const [lake, other] = [await open(layout), await open(layout, 'other')]
      const table = await created(lake)
      expect(await other.listNamespaces()).toEqual([])
      await expect(other.loadTable(table.identifier)).rejects.toMatchObject({ code: 'table_not_found' })
    })

    test('a commit takes part in a transaction of the caller', async () => {
      const catalog = await open(layout)
      const table = await created(catalog)
      const client = await poolOf(layout).connect()
      try {
        await client.query('begin')
        const back = await catalog.commit(table, { ...(await buildAppend(table)), transaction: client })
        expect(back.outcome).toBe('applied')
        await client.query('rollback')
        expect((await catalog.loadTable(table.identifier)).metadataLocation).toBe(table.metadataLocation)
        await client.query('begin')
        const built = await buildAppend(table)
        expect((await catalog.commit(table, { ...built, transaction: client })).outcome).toBe('applied')
        // Lost ones do not break the transaction they are in.
        expect(await catalog.commit(table, { ...(await buildAppend(table)), transaction: client })).toMatchObject({
          why: 'conflict',
        })
        await client.query('commit')
        expect((await catalog.loadTable(table.identifier)).metadata.currentSnapshotId).toBe(built.snapshotId)
      } finally {
        client.release()
      }
    })

    test('a statement that fails in a transaction of the caller is an outcome, and its file is removed', async () => {
      const catalog = await open(layout)
      const table = await created(catalog)
      const client = await poolOf(layout).connect()
      try {
        await client.query('begin')
        await client.query('select 1 / 0').catch(() => {})
        const result = await catalog.commit(table, { ...(await buildAppend(table)), transaction: client })
        expect(result).toMatchObject({ outcome: 'not_applied', why: 'rejected' })
        await client.query('rollback')
      } finally {
        client.release()
      }
      expect(await metadataFiles(table)).toHaveLength(1)
    })

    test('a lock that is not had in time may be had at the next try', async () => {
      const catalog = await open(layout)
      const table = await created(catalog)
      const holder = await poolOf(layout).connect()
      try {
        await holder.query('begin')
        await holder.query('select from iceberg_tables for update')
        const guard = async ({ transaction }: { transaction?: TransactionClient }): Promise<void> => {
          await transaction?.query(`set local lock_timeout = '50ms'`)
        }
        const result = await catalog.commit(table, { ...(await buildAppend(table)), guard })
        expect(result).toMatchObject({ outcome: 'not_applied', why: 'unavailable' })
      } finally {
        await holder.query('rollback')
        holder.release()
      }
    })

    test('a table without a location has a folder of its own, or none', async () => {
      const catalog = await open(layout)
      const { identifier } = await created(catalog)
      for (const name of ['a/b', '..', '.']) {
        const other = { ...identifier, name }
        await expect(catalog.createTable(other, newTable)).rejects.toMatchObject({ code: 'name_invalid' })
      }
      const location = `file://${root}/${layout}/placed${tables}`
      const placed = await catalog.createTable({ ...identifier, name: 'a/b' }, { ...newTable, location })
      expect(placed.metadata.location).toBe(location)
      expect((await catalog.loadTable(placed.identifier)).metadata.tableUuid).toBe(placed.metadata.tableUuid)
    })

    test('a database that has tables only is given what it lacks, in its own layout', async () => {
      const database = await createTestDatabase()
      const options = { name: 'lake', database: database.url, warehouse: root }
      const first = await JdbcCatalog.open({ ...options, createLayout: layout })
      await first.close()
      const client = new pg.Client({ connectionString: database.url })
      await client.connect()
      await client.query('drop table iceberg_namespace_properties')
      await client.end()
      await expect(JdbcCatalog.open({ ...options, createLayout: 'never' })).rejects.toMatchObject({
        code: 'catalog_invalid',
      })
      const catalog = await JdbcCatalog.open({ ...options, createLayout: layout === 'V0' ? 'V1' : 'V0' })
      expect(catalog.layout).toBe(layout)
      await catalog.createNamespace(['db'])
      await catalog.close()
      await database.drop()
    })

    test('the guard runs in the transaction of the commit, and what it locks stays locked until then', async () => {
      const catalog = await open(layout)
      const table = await created(catalog)
      const pool = poolOf(layout)
      await pool.query('create table if not exists fences (id int primary key, holder text)')
      await pool.query(`insert into fences values (1, 'me') on conflict (id) do update set holder = 'me'`)
      let taken: Promise<unknown> | undefined
      const result = await catalog.commit(table, {
        ...(await buildAppend(table)),
        guard: async ({ transaction }) => {
          const held = await transaction?.query(`select from fences where id = 1 and holder = 'me' for share`)
          if (held?.rowCount !== 1) throw new Error('the fence is lost')
          taken = pool.query(`update fences set holder = 'another'
                               where id = 1 returning (select metadata_location from iceberg_tables where table_namespace = '${table.identifier.namespace[0]}')`)
        },
      })
      expect(result.outcome).toBe('applied')
      await taken
      const late = await catalog.loadTable(table.identifier)
      expect(
        await catalog.commit(late, {
          ...(await buildAppend(late)),
          guard: async ({ transaction }) => {
            const held = await transaction?.query(`select from fences where id = 1 and holder = 'me' for share`)
            if (held?.rowCount !== 1) throw new Error('the fence is lost')
          },
        }),
      ).toMatchObject({ why: 'refused' })
      expect((await catalog.loadTable(table.identifier)).metadataLocation).toBe(late.metadataLocation)
    })

    test('a guard whose own statement fails refuses', async () => {
      const catalog = await open(layout)
      const table = await created(catalog)
      const guard = async ({ transaction }: { transaction?: TransactionClient }): Promise<void> => {
        await transaction?.query('select 1 / 0')
      }
      expect(await catalog.commit(table, { ...(await buildAppend(table)), guard })).toMatchObject({ why: 'refused' })
      expect(await metadataFiles(table)).toHaveLength(1)
    })

    test('names that the relations cannot hold are refused', async () => {
      const catalog = await open(layout)
      for (const namespace of [[], ['a.b'], [''], ['x'.repeat(256)]]) {
        await expect(catalog.createNamespace(namespace)).rejects.toMatchObject({ code: 'name_invalid' })
      }
      await expect(catalog.loadTable({ namespace: ['a'], name: '' })).rejects.toMatchObject({ code: 'name_invalid' })
    })
  })
}

describe('a JDBC catalog', () => {
  test('keeps the layout it finds, and makes none when it is told so', async () => {
    const again = await JdbcCatalog.open({ name: 'lake', database: poolOf('V0'), warehouse: root })
    expect(again.layout).toBe('V0')
    const empty = await createTestDatabase()
    await expect(
      JdbcCatalog.open({ name: 'lake', database: empty.url, warehouse: root, createLayout: 'never' }),
    ).rejects.toMatchObject({ code: 'catalog_invalid' })
    await empty.drop()
  })

  test('sees no view as a table, and takes an empty type for a table', async () => {
    const catalog = await open('V1')
    const table = await created(catalog)
    const pool = poolOf('V1')
    const namespace = table.identifier.namespace[0] ?? ''
    await pool.query(`insert into iceberg_tables values ('lake', $1, 'v', $2, null, 'VIEW')`, [
      namespace,
      table.metadataLocation,
    ])
    const view = { namespace: [namespace], name: 'v' }
    expect(await catalog.listTables([namespace])).toEqual([table.identifier])
    await expect(catalog.loadTable(view)).rejects.toMatchObject({ code: 'table_not_found' })
    await expect(catalog.dropTable(view)).rejects.toMatchObject({ code: 'table_not_found' })
    await expect(catalog.createTable(view, newTable)).rejects.toMatchObject({ code: 'table_exists' })
    await pool.query(`update iceberg_tables set iceberg_type = null where table_namespace = $1 and table_name = 't'`, [
      namespace,
    ])
    expect(await catalog.listTables([namespace])).toEqual([table.identifier])
    expect((await catalog.commit(table, await buildAppend(table))).outcome).toBe('applied')
  })

  test('a connection that breaks before the commit is sent: not applied', async () => {
    const catalog = await open('V1')
    const table = await created(catalog)
    const result = await catalog.commit(table, {
      ...(await buildAppend(table)),
      guard: async ({ transaction }) => {
        const pid = await transaction?.query<{ pid: number }>('select pg_backend_pid() as pid')
        await poolOf('V1').query('select pg_terminate_backend($1)', [pid?.rows[0]?.pid])
      },
    })
    expect(result).toMatchObject({ outcome: 'not_applied', why: 'unavailable' })
    expect(await metadataFiles(table)).toHaveLength(1)
    expect((await catalog.loadTable(table.identifier)).metadataLocation).toBe(table.metadataLocation)
  })

  test.each([
    ['after Postgres has committed', true],
    ['before Postgres has committed', false],
  ])('an answer to the commit that is lost %s is found out', async (_when, done) => {
    const pool = new pg.Pool({ connectionString: databases.V1?.url })
    pool.on('error', () => {})
    const catalog = await JdbcCatalog.open({ name: 'lake', database: pool, warehouse: `file://${root}/lost` })
    const table = await created(catalog)
    const result = await catalog.commit(table, {
      ...(await buildAppend(table)),
      guard: async ({ transaction }) => {
        const client = transaction as pg.Client // the pool's own
        const query = client.query.bind(client)
        // What a broken line does: the statement arrives or not, and the answer never does.
        client.query = (async (...args: Parameters<typeof query>) => {
          if (args[0] !== ('commit' as unknown)) return query(...args)
          await (query as (text: string) => Promise<unknown>)(done ? 'commit' : 'rollback')
          throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
        }) as unknown as typeof query
      },
    })
    expect(result.outcome).toBe(done ? 'applied' : 'not_applied')
    expect((await catalog.loadTable(table.identifier)).metadata.snapshots).toHaveLength(done ? 1 : 0)
    expect(await metadataFiles(table)).toHaveLength(done ? 2 : 1)
    await pool.end()
  })
})
