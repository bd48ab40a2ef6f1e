import { stopOnSignals } from '@fencepost/engine'
import type { Output } from '../output/output.ts'
import { openConfiguredEngine } from './database.ts'
import { loadOperations } from './load-operations.ts'
import { createLogger } from './logger.ts'
import { openMaintenance, type Maintenance } from './maintenance.ts'
import { engineOptions, openConfiguredServer } from './running.ts'
import type { EngineSettings, ProcessSettings, ServerSettings } from './settings.ts'

/** Serves until it is told to stop. */
export async function serve(
  settings: EngineSettings & ServerSettings & ProcessSettings,
  output: Output,
): Promise<void> {
  const logger = createLogger(output, settings.logLevel)
  const stop = stopOnSignals()
  const loaded = settings.module === undefined ? {} : await loadOperations(settings.module)
  const { catalogs } = settings
  let maintained: Maintenance | undefined
  const opened = await openConfiguredEngine(settings, output, async ({ url }) => {
    if (catalogs !== undefined) maintained = await openMaintenance(catalogs, loaded, { database: url, logger })
    return { ...engineOptions(settings), ...loaded, ...maintained?.engineOptions, logger }
  })
  try {
    const applications = maintained === undefined ? [] : [maintained.application]
    const server = await openConfiguredServer(opened.engine, settings, logger, applications)
    const operations = opened.engine.operations.map(({ name }) => name)
    output.answer({ url: server.url, database: opened.database.name, operations }, () =>
      operations.length > 0
        ? `Serving ${server.url}. Ctrl-C stops it.`
        : `Serving ${server.url}, without operations: give --module or --catalogs to take jobs. Ctrl-C stops it.`,
    )
    await untilStopped(stop.signal)
    await server.close()
  } finally {
    await maintained?.catalogs.close()
    await opened.close()
    stop.dispose()
  }
}

async function untilStopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
