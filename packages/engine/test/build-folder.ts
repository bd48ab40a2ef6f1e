import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { inject } from 'vitest'
import type {} from './setup/global-setup.ts' // declares what is injected

const root = fileURLToPath(new URL('../../../', import.meta.url))
/** Node's arguments begin with it. */
export const compiler = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url))
const buildLock = 'fencepost.test.build'

/** Brings the dist/ of a package or an example up to date, with all it refers to. Test files wait for each other. */
export async function buildFolder(folder: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('testServer').adminUrl })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock(hashtext($1))', [buildLock])
    execFileSync(process.execPath, [compiler, '-b', folder], { cwd: root, stdio: 'inherit' })
  } finally {
    await client.end()
  }
}
