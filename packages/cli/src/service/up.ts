import { stopOnSignals } from '@fencepost/engine'
import { listTokens } from '@fencepost/server'
import type { Settings } from '../configuration/settings.ts'
import type { Output } from '../output/output.ts'
import { openConfiguredEngine } from './database.ts'
import { embeddedEnded } from './embedded-ended.ts'
import { loadOperations } from './load-operations.ts'
import { createLogger } from './logger.ts'
import { makeLake } from './make-lake.ts'
import { openMaintenance, sampleLakeConfig, type Maintenance } from './maintenance.ts'
import { orphaned } from './orphaned.ts'
import { engineOptions, openConfiguredServer, workOptions } from './running.ts'
import type { EngineSettings, ProcessSettings, ServerSettings, WorkerSettings } from './settings.ts'
import { welcome } from './welcome.ts'

/** Runs a server and a worker on one engine until it is told to stop. */
export async function up(
  settings: EngineSettings & ServerSettings & WorkerSettings & ProcessSettings & Settings<'sampleLake'>,
  output: Output,
): Promise<void> {
  const logger = createLogger(output, settings.logLevel)
  // First of all: Ctrl-C during the start stops what has been started, too.
  const stop = stopOnSignals()
  const loaded = await loadOperations(settings.module ?? 'samples')
  const sample = wantsSampleLake(settings) ? sampleLakeConfig(settings.directory) : undefined
  const catalogs = settings.catalogs ?? sample?.config
  let maintained: Maintenance | undefined
  const opened = await openConfiguredEngine(settings, output, async ({ url }) => {
    if (catalogs !== undefined) maintained = await openMaintenance(catalogs, loaded, { database: url, logger })
    return { ...engineOptions(settings), ...loaded, ...maintained?.engineOptions, logger }
  })
  const { engine, database } = opened
  const ended = embeddedEnded(database)
  const signal = AbortSignal.any([stop.signal, orphaned(process.env), ended])
  try {
    const server = await openConfiguredServer(
      engine,
      settings,
      logger,
      maintained === undefined ? [] : [maintained.application],
    )
    let made: Promise<void> | undefined
    try {
      const worked = engine.work({ ...workOptions(settings), signal })
      const running = {
        url: server.url,
        database: database.name,
        operations: engine.operations.map(({ name }) => name),
        samples: loaded.operationsModule === undefined,
        catalogs: maintained?.catalogs.names ?? [],
        protected: (await listTokens(engine.database)).length > 0,
      }
      output.answer(running, () => welcome(running, output))
      if (sample !== undefined && maintained !== undefined) {
        made = makeLake(engine, maintained, { folder: sample.folder, output, logger, signal })
      }
      signal.addEventListener('abort', () => {
        if (!ended.aborted) output.note('Stopping. A second signal ends at once.')
        // Beside the worker, which gives jobs back in the end: this process must not live on for long after that.
        void server.close().catch(() => {})
      })
      await worked
      ended.throwIfAborted()
    } finally {
      await made
      await server.close()
    }
  } finally {
    await maintained?.catalogs.close()
    await opened.close()
    stop.dispose()
  }
  output.note('Stopped.')
}

/** Only where nothing of the user's own is: an embedded Postgres, no catalogs, no operations. */
function wantsSampleLake(settings: Settings<'database' | 'catalogs' | 'module' | 'sampleLake'>): boolean {
  const { database, catalogs, module, sampleLake } = settings
  return sampleLake && database === undefined && catalogs === undefined && module === undefined
}
