import { exitCodeOf, stopOnSignals } from '@fencepost/engine'
import { command } from '../command/command.ts'
import { UsageError } from '../failure.ts'
import { exitCodes, type Exit } from '../exit-codes.ts'
import { openConfiguredEngine } from './database.ts'
import { loadOperations } from './load-operations.ts'
import { createLogger } from './logger.ts'
import { engineSettings, workerSettings, workOptions } from './running.ts'

export const worker = command({
  name: 'worker',
  summary: 'Claims jobs and runs them',
  options: {
    once: { kind: 'boolean', description: 'Run one job and end; with exit code 3 if none is due.' },
    operations: {
      kind: 'list',
      placeholder: 'names',
      description: 'Only these operations of the module.',
    },
  },
  settings: [...engineSettings, ...workerSettings, 'module', 'logLevel'],
  async run({ options, settings, output }) {
    if (settings.module === undefined) {
      throw new UsageError('A worker needs operations: give --module ./operations.ts, or --module samples.', {
        command: 'worker',
      })
    }
    const logger = createLogger(output, settings.logLevel)
    const stop = stopOnSignals()
    const { maxConnections, staleMs, retentionMs } = settings
    const loaded = await loadOperations(settings.module)
    const opened = await openConfiguredEngine(settings, output, {
      ...loaded,
      maxConnections,
      staleMs,
      retentionMs,
      logger,
    })
    const { engine, database } = opened
    const operations = options.operations ?? engine.operations.map(({ name }) => name)
    const { signal } = stop
    try {
      if (options.once) {
        const { queues, graceMs } = workOptions(settings)
        const only = queues === undefined ? {} : { queues }
        const worked = await engine.workOnce({ operations, graceMs, ...only, signal })
        const jobId = 'jobId' in worked ? worked.jobId : null
        output.answer({ outcome: worked.outcome, job_id: jobId }, () =>
          jobId === null ? saidOf(worked.outcome) : `Job ${jobId}: ${worked.outcome}.`,
        )
        return exitNamed(exitCodeOf(worked))
      }
      const worked = engine.work({ ...workOptions(settings), operations, signal })
      output.answer({ worker_id: engine.workerId, database: database.name, operations }, () =>
        [`Worker ${engine.workerId} runs ${operations.join(', ')}.`, 'Ctrl-C stops it.'].join(' '),
      )
      await worked
      return 'ok'
    } finally {
      await opened.close()
      stop.dispose()
    }
  },
})

function saidOf(outcome: string): string {
  return outcome === 'nothing' ? 'No job is due.' : 'Stopped before a job was claimed.'
}

function exitNamed(code: 0 | 1 | 3): Exit {
  return code === exitCodes.ok.code ? 'ok' : code === exitCodes.nothing.code ? 'nothing' : 'failed'
}
