import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
  expect(applied.flat()).toEqual(all)
  expect(await schemaVersion(pool, { schema })).toEqual({ current: all.length, latest: all.length })
  await open(schema, false)
})

test('migrations are numbered without gaps', async () => {
  expect((await listMigrations()).map(({ version }) => version)).toEqual((await listMigrations()).map((_, n) => n + 1))
})

test('a schema that is missing, older or newer is refused by name', async () => {
  await expect(open('missing', false)).rejects.toMatchObject({ code: 'schema_missing' })
  await migrate(pool, { schema: 'newer' })
  await pool.query(`insert into newer.migrations (version, name) values (9999, 'from the future')`)
  await expect(open('newer', false)).rejects.toMatchObject({ code: 'schema_newer' })
  await expect(open('newer', true)).rejects.toMatchObject({ code: 'schema_newer', details: { current: 9999 } })
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
