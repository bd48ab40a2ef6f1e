import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../src/database/migrate.ts'
import { openEmbeddedPostgres, type EmbeddedPostgres } from '../../src/embedded/index.ts'
import { prepareTemplate } from './prepare-template.ts'
import { beginRun, endRun, type Run } from './run-databases.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The server of this test run; `createTestDatabase()` is how to use it. */
    testServer: TestServer
  }
}

export interface TestServer {
  /** Of a database on the server that is not a test database, for a role that may create some. */
  adminUrl: string
  /** The run; every database of it has a name that begins with `${run}_`. */
  run: string
  template: string
}

const schema = 'fencepost'

/** One server for each test run: that of DATABASE_URL, or an embedded one that leaves nothing behind. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const embedded = process.env.DATABASE_URL
    ? undefined
    : await openEmbeddedPostgres({ temporary: true, durable: false, settings: { max_connections: 300 } })
  const adminUrl = embedded?.url ?? process.env.DATABASE_URL ?? ''
  const run = await beginRun(adminUrl)
  try {
    const template = await makeTemplate(run, adminUrl)
    project.provide('testServer', { adminUrl, run: run.name, template })
  } catch (error) {
    await finish(run, embedded)
    throw error
  }
  return () => finish(run, embedded)
}

async function finish(run: Run, embedded: EmbeddedPostgres | undefined): Promise<void> {
  await endRun(run)
  await embedded?.close()
}

/** Those of the packages on top of the engine, so that their tests find everything in place. */
const migrations = ['server', 'maintenance'].map((name) => ({
  package: name,
  directory: new URL(`../../../${name}/migrations/`, import.meta.url),
}))

async function makeTemplate({ name, session }: Run, adminUrl: string): Promise<string> {
  const template = `${name}_template`
  await session.query(`create database ${template}`)
  const url = new URL(adminUrl)
  url.pathname = `/${template}`
  const pool = new pg.Pool({ connectionString: url.href })
  pool.on('error', () => {}) // a session that has not quite ended when it is terminated below
  try {
    await migrate(pool, { schema, migrations })
    const client = await pool.connect()
    await prepareTemplate(client, schema).finally(() => client.release())
  } finally {
    await pool.end()
  }
  // Nobody can connect any more, and a database that somebody is connected to cannot be copied.
  await session.query(`alter database ${template} with is_template true allow_connections false`)
  await session.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [template])
  return template
}
