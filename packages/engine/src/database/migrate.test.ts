import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/database.ts'
import { openEngine } from '../open.ts'
import { listMigrations, migrate, schemaVersion } from './migrate.ts'

let database: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  database = await createTestDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  pool.on('error', () => {}) // a connection may still be closing when the database is dropped
})
afterAll(async () => {
  await pool.end()
  await database.drop()
})

const open = (schema: string, run: boolean) =>
  openEngine({ database: database.url, schema, migrate: run }).then((engine) => engine.close())

test('processes that start together migrate once, whatever the schema is called', async () => {
  const schema = 'elsewhere'
  const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(pool, { schema })))
  const all = await listMigrations()
  expect(applied.flat()).toEqual(all.map((one) => ({ package: 'engine', ...one })))
  expect(await schemaVersion(pool, { schema })).toEqual({ current: all.length, latest: all.length })
  await open(schema, false)
})

test('migrations are numbered without gaps', async () => {
  expect((await listMigrations()).map(({ version }) => version)).toEqual((await listMigrations()).map((_, n) => n + 1))
})

test('what others were granted on the public views, and views over them, outlive every migration', async () => {
  const schema = 'granted'
  const client = await pool.connect()
  try {
    await client.query(`create schema ${schema}; set search_path to ${schema}, pg_catalog`)
    await client.query('create table migrations (version integer primary key, name text, applied_at timestamptz)')
    for (const { version, name } of (await listMigrations()).slice(0, 2)) {
      await client.query(await readFile(new URL(`../../migrations/${name}`, import.meta.url), 'utf8'))
      await client.query('insert into migrations (version, name) values ($1, $2)', [version, name])
    }
    await client.query(`
      grant select on jobs, job_queue, job_events to public;
      create view waiting as select job_id, visible_at from job_queue where claimed_at is null;
      create view failures as select job.job_id, ts, message
                                from jobs job join job_events using (job_id) where status = 'failed'`)
  } finally {
    client.release(true)
  }
  const applied = await migrate(pool, { schema })
  expect(applied.map(({ version }) => version)).toEqual((await listMigrations()).slice(2).map(({ version }) => version))
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_class, aclexplode(relacl)
      where relnamespace = $1::regnamespace and relkind = 'v' and grantee = 0 and privilege_type = 'SELECT'`,
    [schema],
  )
  expect(rows.map(({ name }) => name).toSorted()).toEqual(['job_events', 'job_queue', 'jobs'])
  for (const view of ['waiting', 'failures'])
    expect((await pool.query(`select * from ${schema}.${view}`)).rows).toEqual([])
})

test('a schema that is missing, older or newer is refused by name', async () => {
  await expect(open('missing', false)).rejects.toMatchObject({ code: 'schema_missing' })
  await migrate(pool, { schema: 'newer' })
  await pool.query(`insert into newer.migrations (version, name) values (9999, 'from the future')`)
  await expect(open('newer', false)).rejects.toMatchObject({ code: 'schema_newer' })
  await expect(open('newer', true)).rejects.toMatchObject({ code: 'schema_newer', details: { current: 9999 } })
})

describe('a package with migrations of its own', () => {
  let directory: string
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fencepost-migrations-'))
    await writeFile(join(directory, '0001-things.sql'), 'create table things (n integer)')
  })
  afterAll(() => rm(directory, { recursive: true }))
  const set = () => ({ package: 'things', directory: pathToFileURL(`${directory}/`) })

  test('has a version of its own, and its migrations are applied after the engine’s, once', async () => {
    const schema = 'packaged'
    const options = { schema, migrations: [set()] }
    const applied = (await Promise.all(Array.from({ length: 3 }, () => migrate(pool, options)))).flat()
    expect(applied.map((one) => one.package).slice(-2)).toEqual(['engine', 'things'])
    expect(applied).toHaveLength((await listMigrations()).length + 1)
    expect(await schemaVersion(pool, { schema, set: set() })).toEqual({ current: 1, latest: 1 })
    await writeFile(join(directory, '0002-more.sql'), 'alter table things add column more text')
    await expect(
      openEngine({ database: database.url, schema, migrate: false, migrations: [set()] }),
    ).rejects.toMatchObject({ code: 'schema_outdated', details: { package: 'things', current: 1, latest: 2 } })
    expect((await migrate(pool, options)).map(({ name }) => name)).toEqual(['0002-more.sql'])
    expect((await pool.query(`select n, more from ${schema}.things`)).rows).toEqual([])
  })

  test('that is newer than this release stops every set from being applied', async () => {
    const schema = 'newer_package'
    await migrate(pool, { schema, migrations: [set()] })
    await pool.query(`insert into ${schema}.package_migrations (package, version, name) values ('things', 99, 'later')`)
    await pool.query(`delete from ${schema}.migrations where version = (select max(version) from ${schema}.migrations)`)
    await expect(migrate(pool, { schema, migrations: [set()] })).rejects.toMatchObject({
      code: 'schema_newer',
      details: { package: 'things', current: 99 },
    })
    const { current, latest } = await schemaVersion(pool, { schema })
    expect(current).toBe(latest - 1)
  })
})

test('an option that cannot be used is refused', async () => {
  await expect(open('Bad name', true)).rejects.toMatchObject({ code: 'options_invalid' })
  await expect(openEngine({ database: database.url, maxConnections: 0 })).rejects.toMatchObject({
    code: 'number_invalid',
  })
})

test('a database that is not there is a retryable error', async () => {
  const nowhere = 'postgres://nobody@127.0.0.1:1/none'
  await expect(openEngine({ database: nowhere })).rejects.toMatchObject({
    code: 'database_unavailable',
    retryable: true,
  })
})

test('a closed engine says so', async () => {
  const engine = await openEngine({ database: database.url, schema: 'closed' })
  await engine.close()
  await engine.close()
  await expect(engine.list()).rejects.toMatchObject({ code: 'engine_closed' })
})
