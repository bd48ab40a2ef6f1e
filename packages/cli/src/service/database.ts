import { openEmbeddedPostgres, openEngine, type Engine, type EngineOptions } from '@fencepost/engine'
import { maskUrl } from '../configuration/mask.ts'
import type { Settings } from '../configuration/settings.ts'
import type { Output } from '../output/output.ts'

/** The Postgres that was configured, or an embedded one that is started or joined. */
export interface OpenedDatabase {
  url: string
  /** How it is named to people: without its password. */
  name: string
  close: () => Promise<void>
}

export async function openDatabase(
  { database, directory }: Settings<'database' | 'directory'>,
  output: Output,
): Promise<OpenedDatabase> {
  if (database !== undefined) return { url: database, name: maskUrl(database), close: async () => {} }
  if (output.terminal) output.note(output.style('dim', `Starting the embedded Postgres in ${directory} …`))
  const embedded = await openEmbeddedPostgres({ directory })
  return { url: embedded.url, name: `embedded Postgres in ${directory}`, close: () => embedded.close() }
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
  options: EngineOptions = {},
): Promise<OpenedEngine> {
  const database = await openDatabase(settings, output)
  try {
    const { schema, migrate } = settings
    const engine = await openEngine({ database: database.url, schema, migrate, ...options })
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
