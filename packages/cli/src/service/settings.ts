import type { Settings } from '../configuration/settings.ts'

// Which settings processes that run for long have in common.

export const databaseSettings = ['database', 'directory', 'schema'] as const
export const engineSettings = [...databaseSettings, 'migrate', 'maxConnections', 'staleMs', 'retentionMs'] as const
export const serverSettings = [
  'host',
  'port',
  'corsOrigins',
  'trustProxy',
  'tlsCert',
  'tlsKey',
  'accessLog',
  'maxBodyBytes',
  'rateLimitPerSecond',
] as const
export const workerSettings = ['concurrency', 'queues', 'graceMs', 'pollMs'] as const

export type DatabaseSettings = Settings<(typeof databaseSettings)[number]>
export type EngineSettings = Settings<(typeof engineSettings)[number]>
export type ServerSettings = Settings<(typeof serverSettings)[number]>
export type WorkerSettings = Settings<(typeof workerSettings)[number]>
/** What runs, and how much it says. */
export const processSettings = ['module', 'catalogs', 'logLevel'] as const
export type ProcessSettings = Settings<(typeof processSettings)[number]>
