import type { Context } from './context.ts'
import { Database, type PausePoint } from './database/database.ts'
import { failure } from './database/failure.ts'
import { migrate, requireSchema } from './database/migrate.ts'
import { openEmbeddedPostgres, type EmbeddedPostgres } from './embedded/index.ts'
import { Engine } from './engine.ts'
import { checkOptions, type CheckedOptions, type EngineOptions } from './options.ts'
import { createTelemetry } from './telemetry.ts'
import { Wake, type Transport } from './wake.ts'
import { postgresTransport } from './worker/notify.ts'

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
  const written = { tell: () => {} } // nobody can be told before the engine is open
  const database = new Database({
    ...checked,
    url: server.url,
    pausePoint: hooks.pausePoint,
    onConnectionError: (error) => logger.warn({ err: error }, 'connection_lost'),
    onWritten: () => written.tell(),
  })
  const closeDatabase = async () => {
    await database.close()
    await server.close()
  }
  let transport: Transport
  try {
    await prepareSchema(database, checked)
    transport = await openTransport(database, server.url, checked)
  } catch (error) {
    await closeDatabase()
    throw failure(error, 'open', 'no')
  }
  const wake = new Wake(transport, logger, checked.wakeDelayMs)
  written.tell = () => wake.written()
  const close = async () => {
    await wake.close()
    await closeDatabase()
  }
  const context: Context = {
    database,
    url: server.url,
    operations: checked.operations,
    limits: checked,
    logger,
    wake,
    migrates: checked.migrate,
    durableClaims: checked.durableClaims,
    telemetry: createTelemetry(),
    handlerProcess: checked,
  }
  return new Engine(context, { workerId: checked.workerId, close })
}

async function prepareSchema(database: Database, options: CheckedOptions): Promise<void> {
  if (options.migrate) await migrate(database.pool, options)
  else await requireSchema(database.pool, options)
}

async function openTransport(database: Database, url: string, options: CheckedOptions): Promise<Transport> {
  const { wakeUp, schema, logger } = options
  return wakeUp === 'listen' ? postgresTransport(database, url, logger) : wakeUp.open({ schema, logger })
}

/** A server that is not ours to stop. */
function given(url: string): Pick<EmbeddedPostgres, 'url' | 'close'> {
  return { url, close: async () => {} }
}
