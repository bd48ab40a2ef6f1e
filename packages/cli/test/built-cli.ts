import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { inject } from 'vitest'

export const root = fileURLToPath(new URL('../../../', import.meta.url))
export const program = fileURLToPath(new URL('../bin/fencepost.js', import.meta.url))

const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc')
const buildLock = 'fencepost.test.build'

/** Brings dist/ up to date, as `npm start` does. Test files that begin together wait for each other. */
export async function buildCli(): Promise<void> {
  const client = new pg.Client({ connectionString: inject('testServer').adminUrl })
  await client.connect()
  try {
    await client.query('select pg_advisory_lock(hashtext($1))', [buildLock])
    execFileSync(process.execPath, [compiler, '-b', 'packages/cli'], { cwd: root, stdio: 'inherit' })
  } finally {
    await client.end()
  }
}
