import pg from 'pg'
import { superuser } from './data-directory.ts'
import type { Folder } from './folder.ts'
import { readPassword } from './password.ts'
import type { Server } from './server.ts'

const database = 'fencepost'

/** Makes the database where it is missing, and returns its URL. Only under the folder's lock. */
export async function ensureDatabase(folder: Folder, server: Server): Promise<string> {
  const client = new pg.Client({
    connectionString: serverUrl(folder, server, 'postgres'),
    connectionTimeoutMillis: 10_000,
  })
  client.on('error', () => {}) // the statement that is under way reports it
  try {
    await client.connect()
    const { rowCount } = await client.query('select from pg_database where datname = $1', [database])
    if (rowCount === 0) await client.query(`create database ${database}`)
  } finally {
    await client.end()
  }
  return serverUrl(folder, server, database)
}

function serverUrl(folder: Folder, { port }: Server, name: string): string {
  // Said here, so that a PGSSLMODE in the environment does not ask this server for what it does not have.
  return `postgres://${superuser}:${readPassword(folder)}@127.0.0.1:${port}/${name}?sslmode=disable`
}
