import { openEngine, runWorker, type EngineOptions, type RunWorkerOptions } from '@fencepost/engine'
import { operations } from './operations.ts'

// A worker as a process of its own. It logs to stdout.

const given = JSON.parse(process.argv[2] ?? '{}') as { engine: Partial<EngineOptions>; worker: RunWorkerOptions }
const log = (fields: Record<string, unknown>, message: string) =>
  process.stdout.write(`${message} ${JSON.stringify(fields)}\n`)
const engine = await openEngine({
  migrate: false,
  operations,
  operationsModule: new URL('./operations.js', import.meta.url),
  logger: { info: log, warn: log, error: log },
  ...given.engine,
})
process.exit(await runWorker(engine, given.worker))
