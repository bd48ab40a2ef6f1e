import { stopOnSignals } from '@fencepost/engine'
import { listTokens, openServer } from '@fencepost/server'
import { command } from '../command/command.ts'
import { openConfiguredEngine } from './database.ts'
import { loadOperations } from './load-operations.ts'
import { createLogger } from './logger.ts'
import { engineSettings, serverOptions, serverSettings, workerSettings, workOptions } from './running.ts'
import { welcome } from './welcome.ts'

export const up = command({
  name: 'up',
  summary: 'Starts everything in one process: the database, its migrations, the HTTP API and a worker',
  settings: [...engineSettings, ...serverSettings, ...workerSettings, 'module', 'logLevel'],
  async run({ settings, output }) {
    const logger = createLogger(output, settings.logLevel)
    // First of all: Ctrl-C during the start stops what has been started, too.
    const stop = stopOnSignals()
    const { staleMs, retentionMs, maxConnections } = settings
    const loaded = await loadOperations(settings.module ?? 'samples')
    const opened = await openConfiguredEngine(settings, output, {
      ...loaded,
      staleMs,
      retentionMs,
      maxConnections,
      logger,
    })
    const { engine, database } = opened
    try {
      const server = await openServer({ engine, logger, ...serverOptions(settings) })
      try {
        const worked = engine.work({ ...workOptions(settings), signal: stop.signal })
        const running = {
          url: server.url,
          database: database.name,
          operations: engine.operations.map(({ name }) => name),
          samples: loaded.operationsModule === undefined,
          protected: (await listTokens(engine.database)).length > 0,
        }
        output.answer(running, () => welcome(running, output))
        stop.signal.addEventListener('abort', () => output.note('Stopping. A second signal ends at once.'))
        await worked
      } finally {
        await server.close()
      }
    } finally {
      await opened.close()
      stop.dispose()
    }
    output.note('Stopped.')
  },
})
