import type { ServerOptions } from '@fencepost/server'
import type { Settings } from '../configuration/settings.ts'

// What processes that run for long have in common.

export const databaseSettings = ['database', 'directory', 'schema'] as const
export const engineSettings = [...databaseSettings, 'migrate', 'maxConnections', 'staleMs', 'retentionMs'] as const
export const serverSettings = [
  'host',
  'port',
  'corsOrigins',
  'trustProxy',
  'maxBodyBytes',
  'rateLimitPerSecond',
] as const
export const workerSettings = ['concurrency', 'queues', 'graceMs', 'pollMs'] as const

export function serverOptions({
  corsOrigins,
  ...settings
}: Settings<(typeof serverSettings)[number]>): Omit<ServerOptions, 'engine'> {
  const { host, port, trustProxy, maxBodyBytes, rateLimitPerSecond } = settings
  return {
    host,
    port,
    trustProxy,
    maxBodyBytes,
    rateLimitPerSecond,
    // As the server has it by default: twice of what a second allows.
    rateLimitBurst: 2 * rateLimitPerSecond,
    ...(corsOrigins === undefined ? {} : { corsOrigins }),
  }
}

export function workOptions({ queues, concurrency, graceMs, pollMs }: Settings<(typeof workerSettings)[number]>) {
  return { concurrency, graceMs, pollMs, ...(queues === undefined ? {} : { queues }) }
}

/** Resolves when the signal fires. */
export async function untilStopped(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
}
