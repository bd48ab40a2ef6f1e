import { migrate as runMigrations, schemaVersion, type Migration } from '@fencepost/engine'
import pg from 'pg'
import { command } from '../command/command.ts'
import { openDatabase } from './database.ts'
import { databaseSettings } from './running.ts'

export const migrate = command({
  name: 'migrate',
  summary: 'Brings the schema to this release',
  options: {
    status: {
      kind: 'boolean',
      description: 'Only say which version it has; with exit code 1 if that is not this one.',
    },
  },
  settings: databaseSettings,
  async run({ options, settings, output }) {
    const { schema } = settings
    const database = await openDatabase(settings, output)
    const pool = new pg.Pool({ connectionString: database.url, max: 1, connectionTimeoutMillis: 10_000 })
    pool.on('error', () => {}) // the statement that is under way reports it
    try {
      const applied: Migration[] = options.status ? [] : await runMigrations(pool, { schema })
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
  },
})
