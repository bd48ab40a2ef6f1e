import pg from 'pg'
import { describe, expect, inject, it } from 'vitest'
import { createTestDatabase } from './database.ts'
import { beginRun, endRun } from './setup/run-databases.ts'

describe('a test database', () => {
  it('is migrated, and of its own', async () => {
    const [one, other] = await Promise.all([createTestDatabase(), createTestDatabase()])
    expect(await ask(one.url, `create table only_here (); select to_regclass('fencepost.jobs')::text as jobs`)).toEqual(
      [{ jobs: 'fencepost.jobs' }],
    )
    expect(await ask(other.url, `select to_regclass('only_here') as there`)).toEqual([{ there: null }])
    await Promise.all([one.drop(), other.drop()])
  })

  it('is dropped while somebody is connected', async () => {
    const { url, drop } = await createTestDatabase()
    const client = new pg.Client({ connectionString: url })
    const cut = new Promise((resolve) => client.on('error', resolve))
    await client.connect()
    await drop()
    expect(await cut).toMatchObject({ code: '57P01' }) // admin_shutdown
    const name = new URL(url).pathname.slice(1)
    const left = await ask(inject('testServer').adminUrl, `select from pg_database where datname = '${name}'`)
    expect(left).toEqual([])
    await drop()
  })

  it('is not dropped by another run on the same server, which drops what a killed run has left', async () => {
    const { adminUrl } = inject('testServer')
    const { url, drop } = await createTestDatabase()
    await ask(adminUrl, 'create database fencepost_test_00000000_left')
    const other = await beginRun(adminUrl)
    expect(await ask(url, 'select 1 as there')).toEqual([{ there: 1 }])
    expect(await ask(adminUrl, `select from pg_database where datname = 'fencepost_test_00000000_left'`)).toEqual([])
    await endRun(other)
    await drop()
  })
})

async function ask(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const results: unknown = await client.query(text)
    const last = (Array.isArray(results) ? results.at(-1) : results) as pg.QueryResult
    return last.rows as unknown[]
  } finally {
    await client.end()
  }
}
