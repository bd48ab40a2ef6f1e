import { exitCodeOf, stopOnSignals, type Engine, type WorkOptions } from '@fencepost/engine'
import { UsageError } from '../failure.ts'
import { exitCodes, type Exit } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import { openConfiguredEngine } from './database.ts'
import { loadOperations } from './load-operations.ts'
import { createLogger } from './logger.ts'
import { openMaintenance, type Maintenance } from './maintenance.ts'
import { engineOptions, workOptions } from './running.ts'
import type { EngineSettings, ProcessSettings, WorkerSettings } from './settings.ts'

/** Works until it is told to stop, or runs one job. */
export async function worker(
  options: { once: boolean; operations: readonly string[] | undefined },
  settings: EngineSettings & WorkerSettings & ProcessSettings,
  output: Output,
): Promise<Exit> {
  const { module, catalogs } = settings
  if (module === undefined && catalogs === undefined) {
    throw new UsageError('A worker needs operations: give --module ./operations.ts, --module samples or --catalogs.', {
      command: 'worker',
    })
  }
  const logger = createLogger(output, settings.logLevel)
  const stop = stopOnSignals()
  const loaded = module === undefined ? {} : await loadOperations(module)
  let maintained: Maintenance | undefined
  const opened = await openConfiguredEngine(settings, output, async ({ url }) => {
    if (catalogs !== undefined) maintained = await openMaintenance(catalogs, loaded, { database: url, logger })
    return { ...engineOptions(settings), ...loaded, ...maintained?.engineOptions, logger }
  })
  const { engine, database } = opened
  const operations = options.operations ?? engine.operations.map(({ name }) => name)
  const work = { ...workOptions(settings), operations, signal: stop.signal }
  try {
    if (options.once) return await workOnce(engine, work, output)
    const worked = engine.work(work)
    output.answer(
      { worker_id: engine.workerId, database: database.name, operations },
      () => `Worker ${engine.workerId} runs ${operations.join(', ')}. Ctrl-C stops it.`,
    )
    await worked
    return 'ok'
  } finally {
    await maintained?.catalogs.close()
    await opened.close()
    stop.dispose()
  }
}

async function workOnce(engine: Engine, work: WorkOptions, output: Output): Promise<Exit> {
  const worked = await engine.workOnce(work)
  const jobId = 'jobId' in worked ? worked.jobId : null
  output.answer({ outcome: worked.outcome, job_id: jobId }, () => {
    if (jobId !== null) return `Job ${jobId}: ${worked.outcome}.`
    return worked.outcome === 'nothing' ? 'No job is due.' : 'Stopped before a job was claimed.'
  })
  switch (exitCodeOf(worked)) {
    case exitCodes.ok.code:
      return 'ok'
    case exitCodes.nothing.code:
      return 'nothing'
    case exitCodes.failed.code:
      return 'failed'
  }
}
