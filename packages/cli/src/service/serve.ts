import { stopOnSignals } from '@fencepost/engine'
import type { Output } from '../output/output.ts'
import { openConfiguredEngine } from './database.ts'
import { loadOperations } from './load-operations.ts'
import { createLogger } from './logger.ts'
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
  const opened = await openConfiguredEngine(settings, output, { ...engineOptions(settings), ...loaded, logger })
  try {
    const server = await openConfiguredServer(opened.engine, settings, logger)
    const operations = opened.engine.operations.map(({ name }) => name)
    output.answer({ url: server.url, database: opened.database.name, operations }, () =>
      operations.length > 0
        ? `Serving ${server.url}. Ctrl-C stops it.`
        : `Serving ${server.url}, without operations: give --module to take jobs. Ctrl-C stops it.`,
    )
    await untilStopped(stop.signal)
    await server.close()
  } finally {
    await opened.close()
    stop.dispose()
  }
}

async function untilStopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
