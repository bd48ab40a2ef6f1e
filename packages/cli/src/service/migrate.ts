import { migrate as runMigrations, schemaVersion, type Migration } from '@fencepost/engine'
import pg from 'pg'
import type { Exit } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import { openDatabase } from './database.ts'
import type { DatabaseSettings } from './settings.ts'

/** Runs the migrations, or only says which version the schema has. */
export async function migrate(
  { status }: { status: boolean },
  settings: DatabaseSettings,
  output: Output,
): Promise<Exit> {
  const { schema } = settings
  const database = await openDatabase(settings, output)
  const pool = new pg.Pool({ connectionString: database.url, max: 1, connectionTimeoutMillis: 10_000 })
  pool.on('error', () => {}) // the statement that is under way reports it
  try {
    const applied: Migration[] = status ? [] : await runMigrations(pool, { schema })
    const { current, latest } = await schemaVersion(pool, { schema })
    output.answer({ schema, current, latest, applied }, () =>
      [
        ...applied.map(({ name }) => `Applied ${name}.`),
        `Schema ${schema} is at version ${current}; this release works with ${latest}.`,
      ].join('\n'),
    )
    return current === latest ? 'ok' : 'failed'
  } finally {
    await pool.end()
    await database.close()
  }
}
