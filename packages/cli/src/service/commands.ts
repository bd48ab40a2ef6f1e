import { command } from '../command/command.ts'
import { databaseSettings, engineSettings, processSettings, serverSettings, workerSettings } from './settings.ts'

// What runs them is loaded when they run: the engine and the server take longer to load than other commands to run.

export const up = command({
  name: 'up',
  summary: 'Starts everything in one process: the database, its migrations, the HTTP API and a worker',
  settings: [...engineSettings, ...serverSettings, ...workerSettings, ...processSettings, 'sampleLake'],
  run: async ({ settings, output }) => (await import('./up.ts')).up(settings, output),
})

export const serve = command({
  name: 'serve',
  summary: 'Serves the HTTP API',
  settings: [...engineSettings, ...serverSettings, ...processSettings],
  run: async ({ settings, output }) => (await import('./serve.ts')).serve(settings, output),
})

export const worker = command({
  name: 'worker',
  summary: 'Claims jobs and runs them',
  options: {
    once: { kind: 'boolean', description: 'Run one job and end; with exit code 3 if none is due.' },
    operations: { kind: 'list', placeholder: 'names', description: 'Only these operations of the module.' },
  },
  settings: [...engineSettings, ...workerSettings, ...processSettings],
  run: async ({ options, settings, output }) => (await import('./worker.ts')).worker(options, settings, output),
})

export const migrate = command({
  name: 'migrate',
  summary: 'Brings the schema to this release',
  options: {
    status: {
      kind: 'boolean',
      description: 'Only say which version it has; with exit code 1 if that is not this one.',
    },
  },
  settings: databaseSettings,
  run: async ({ options, settings, output }) => (await import('./migrate.ts')).migrate(options, settings, output),
})
