import { openEmbeddedPostgres, openEngine, type Engine, type EngineOptions } from '@fencepost/engine'
import { join } from 'node:path'
import { UsageError } from '../failure.ts'
import { maskUrl } from '../configuration/mask.ts'
import type { Settings } from '../configuration/settings.ts'
import type { Output } from '../output/output.ts'
import { migrations } from './migrations.ts'

/** The Postgres that was configured, or an embedded one that is started or joined. */
export interface OpenedDatabase {
  url: string
  /** How it is named to people: without its password. */
  name: string
  close: () => Promise<void>
  /** For the embedded one: whether its server still runs, and where its log is. */
  embedded?: { isRunning: () => boolean; log: string }
}

export async function openDatabase(
  { database, directory }: Settings<'database' | 'directory'>,
  output: Output,
): Promise<OpenedDatabase> {
  if (database !== undefined) checkDatabaseUrl(database)
  if (database !== undefined) return { url: database, name: maskUrl(database), close: async () => {} }
  if (output.terminal) output.note(output.style('dim', `Starting the embedded Postgres in ${directory} …`))
  const embedded = await openEmbeddedPostgres({ directory })
  return {
    url: embedded.url,
    name: `embedded Postgres in ${directory}`,
    close: () => embedded.close(),
    embedded: { isRunning: () => embedded.isRunning(), log: join(embedded.directory, 'server.log') },
  }
}

function checkDatabaseUrl(database: string): void {
  // With an unescaped / in the password, the rest of it and the host are read as the name of the database.
  const url = /^postgres(ql)?:\/\//.test(database) && URL.canParse(database) ? new URL(database) : undefined
  if (url !== undefined && !/@/.test(url.pathname + url.hash)) return
  const wanted = 'give a URL: postgres://user@host:5432/database'
  if (/^\s*\w+\s*=/.test(database)) {
    throw new UsageError(
      `--database is a connection string of libpq (keyword=value), which is not understood; ${wanted}.`,
    )
  }
  const percent = 'Characters such as / ? # @ in a password are written with a percent sign: %2F %3F %23 %40'
  throw new UsageError(`--database is ${maskUrl(database)}, which is not the URL of a Postgres; ${wanted}. ${percent}.`)
}

export interface OpenedEngine {
  engine: Engine
  database: OpenedDatabase
  /** Closes the engine, and ends the use of an embedded Postgres. */
  close: () => Promise<void>
}

/** An engine on that database. */
export async function openConfiguredEngine(
  settings: Settings<'database' | 'directory' | 'schema' | 'migrate'>,
  output: Output,
  options: EngineOptions | ((database: OpenedDatabase) => Promise<EngineOptions>) = {},
): Promise<OpenedEngine> {
  const database = await openDatabase(settings, output)
  try {
    const { schema, migrate } = settings
    const more = typeof options === 'function' ? await options(database) : options
    const engine = await openEngine({ database: database.url, schema, migrate, migrations, ...more })
    const close = async () => {
      await engine.close()
      await database.close()
    }
    return { engine, database, close }
  } catch (error) {
    await database.close()
    throw error
  }
}
