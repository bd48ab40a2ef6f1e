// @ts-check
import { openEmbeddedPostgres } from '@fencepost/engine'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { serverCpuMs } from './server-cpu.mjs'

/** The same for every system. fsync and synchronous_commit are on, as Postgres ships them; said here to be seen. */
export const settings = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '1GB',
  max_wal_size: '4GB',
  wal_compression: 'on',
  checkpoint_timeout: '15min',
  autovacuum_naptime: '10s',
  random_page_cost: '1.1',
  max_connections: '200', // graphile-worker takes a connection per job at once and one more
  track_io_timing: 'on',
}

/** One server for the whole bench, with a database per system that is made anew for every cell. */
export async function openPostgres() {
  const server = await openEmbeddedPostgres({ temporary: true, settings })
  const admin = new pg.Pool({ connectionString: urlOf(server.url, 'postgres'), max: 4 })
  admin.on('error', () => {})
  const { data_directory: data } = (await admin.query('show data_directory')).rows[0]
  const postmasterPid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
  return {
    version: async () => (await admin.query('show server_version')).rows[0].server_version,
    /** Drops the database and makes it again, from a template where one is named; its URL. */
    recreate: async (database, template = 'template0') => {
      await admin.query(`drop database if exists "${database}" with (force)`)
      await admin.query(`create database "${database}" template "${template}" strategy file_copy`)
      return urlOf(server.url, database)
    },
    drop: (database) => admin.query(`drop database if exists "${database}" with (force)`),
    /** Vacuumed, analysed and written out: what happens next is not disturbed by what was loaded before. */
    settle: async (url) => {
      await withClient(url, (client) => client.query('vacuum analyze'))
      await admin.query('checkpoint')
    },
    walPosition: async () => Number((await admin.query(`select pg_current_wal_lsn() - '0/0' as bytes`)).rows[0].bytes),
    cpuMs: () => serverCpuMs(postmasterPid),
    close: async () => {
      await admin.end().catch(() => {})
      await server.close()
    },
  }
}

export async function connect(url) {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' })
  client.on('error', () => {})
  await client.connect()
  return client
}

export async function withClient(url, work) {
  const client = await connect(url)
  try {
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

function urlOf(url, database) {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.href
}
