import type { Context } from './context.ts'
import { Database, type PausePoint } from './database/database.ts'
import { failure } from './database/failure.ts'
import { migrate, requireSchema } from './database/migrate.ts'
import { openEmbeddedPostgres, type EmbeddedPostgres } from './embedded/index.ts'
import { Engine } from './engine.ts'
import { checkOptions, type CheckedOptions, type EngineOptions } from './options.ts'
import { Wake } from './wake.ts'

/** Opens an engine on a Postgres, or on an embedded one that is started for it, and brings its schema up to date. */
export async function openEngine(options: EngineOptions = {}): Promise<Engine> {
  return openEngineWith(options, {})
}

/** The same, with the hooks that tests stop at. */
export async function openEngineWith(
  options: EngineOptions,
  hooks: { pausePoint?: PausePoint | undefined },
): Promise<Engine> {
  const checked = checkOptions(options)
  const server = checked.database === undefined ? await openEmbeddedPostgres() : given(checked.database)
  const { logger } = checked
  const database = new Database({
    ...checked,
    url: server.url,
    pausePoint: hooks.pausePoint,
    onConnectionError: (error) => logger.warn({ err: error }, 'connection_lost'),
  })
  const wake = new Wake(database, logger, checked.wakeDelayMs)
  const close = async () => {
    await wake.close()
    await database.close()
    await server.close()
  }
  try {
    await prepareSchema(database, checked)
  } catch (error) {
    await close()
    throw failure(error, 'open', 'no')
  }
  const context: Context = { database, operations: checked.operations, limits: checked, logger, wake }
  return new Engine(context, { workerId: checked.workerId, close })
}

async function prepareSchema(database: Database, options: CheckedOptions): Promise<void> {
  if (options.migrate) await migrate(database.pool, options)
  else await requireSchema(database.pool, options)
}

/** A server that is not ours to stop. */
function given(url: string): Pick<EmbeddedPostgres, 'url' | 'close'> {
  return { url, close: async () => {} }
}
