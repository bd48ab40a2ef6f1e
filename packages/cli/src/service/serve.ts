import { stopOnSignals } from '@fencepost/engine'
import { openServer } from '@fencepost/server'
import { command } from '../command/command.ts'
import { openConfiguredEngine } from './database.ts'
import { loadOperations } from './load-operations.ts'
import { createLogger } from './logger.ts'
import { engineSettings, serverOptions, serverSettings, untilStopped } from './running.ts'

export const serve = command({
  name: 'serve',
  summary: 'Serves the HTTP API',
  settings: [...engineSettings, ...serverSettings, 'module', 'logLevel'],
  async run({ settings, output }) {
    const logger = createLogger(output, settings.logLevel)
    const stop = stopOnSignals()
    const loaded = settings.module === undefined ? undefined : await loadOperations(settings.module)
    const { staleMs, retentionMs, maxConnections } = settings
    const opened = await openConfiguredEngine(settings, output, {
      ...loaded,
      staleMs,
      retentionMs,
      maxConnections,
      logger,
    })
    try {
      const server = await openServer({ engine: opened.engine, logger, ...serverOptions(settings) })
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
  },
})
