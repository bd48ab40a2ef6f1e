import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import type {} from './setup/global-setup.ts' // declares what is injected

export interface TestDatabase {
  url: string
  /** Drops it, whoever is connected. What is not dropped goes at the end of the run. */
  drop(): Promise<void>
}

/** A database of its own for a test: migrated, empty, with the clock that can be moved. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { adminUrl, run, template } = inject('testServer')
  const name = `${run}_${randomBytes(6).toString('hex')}`
  await asAdmin(adminUrl, `create database ${name} template ${template}`)
  const url = new URL(adminUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => asAdmin(adminUrl, `drop database if exists ${name} with (force)`) }
}

async function asAdmin(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {}) // the statement that is under way reports it
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
