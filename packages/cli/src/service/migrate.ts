import { migrate as runMigrations, schemaVersion } from '@fencepost/engine'
import pg from 'pg'
import type { Exit } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import { openDatabase } from './database.ts'
import { migrations } from './migrations.ts'
import type { DatabaseSettings } from './settings.ts'

/** Runs the migrations of all packages, or only says which version the schema has. */
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
    const applied = status ? [] : await runMigrations(pool, { schema, migrations })
    const { current, latest } = await schemaVersion(pool, { schema })
    const packages = await Promise.all(
      migrations.map(async (set) => ({ package: set.package, ...(await schemaVersion(pool, { schema, set })) })),
    )
    output.answer({ schema, current, latest, packages, applied }, () =>
      [
        ...applied.map(({ package: of, name }) => `Applied ${of}/${name}.`),
        `Schema ${schema} is at version ${current}; this release works with ${latest}.`,
        ...packages.map((one) => `Its ${one.package} part is at version ${one.current} of ${one.latest}.`),
      ].join('\n'),
    )
    return [{ current, latest }, ...packages].every((one) => one.current === one.latest) ? 'ok' : 'failed'
  } finally {
    await pool.end()
    await database.close()
  }
}
