import type { Engine, EngineOptions, Logger, WorkOptions } from '@fencepost/engine'
import { readFileSync } from 'node:fs'
import { openServer, type Application, type Server, type ServerOptions } from '@fencepost/server'
import { UsageError } from '../failure.ts'
import type { EngineSettings, ServerSettings, WorkerSettings } from './settings.ts'

/** A server with the settings that were configured. */
export async function openConfiguredServer(
  engine: Engine,
  settings: ServerSettings,
  logger: Logger,
  applications: readonly Application[] = [],
): Promise<Server> {
  const { host, port, corsOrigins, trustProxy, maxBodyBytes, rateLimitPerSecond, accessLog } = settings
  return openServer({
    engine,
    logger,
    applications,
    host,
    port,
    trustProxy: trustProxyOf(trustProxy),
    tls: tlsOf(settings),
    accessLog,
    maxBodyBytes,
    rateLimitPerSecond,
    // As the server has it by default: twice of what a second allows.
    rateLimitBurst: 2 * rateLimitPerSecond,
    ...(corsOrigins === undefined ? {} : { corsOrigins }),
  })
}

function tlsOf({ tlsCert, tlsKey }: ServerSettings): ServerOptions['tls'] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new UsageError('HTTPS needs both a certificate and its key: give --tls-cert and --tls-key.')
  }
  return { cert: readPem(tlsCert, '--tls-cert'), key: readPem(tlsKey, '--tls-key') }
}

function readPem(path: string, flag: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new UsageError(`${flag} cannot be read: ${(error as Error).message}.`, { cause: error })
  }
}

function trustProxyOf(proxies: readonly string[] | undefined): false | number | readonly string[] {
  if (proxies === undefined) return false
  const [only] = proxies
  return proxies.length === 1 && only !== undefined && /^\d{1,3}$/.test(only) ? Number(only) : proxies
}

/** A command that works ends its process afterwards. */
export function workOptions({ queues, concurrency, graceMs, pollMs }: WorkerSettings): WorkOptions {
  return { concurrency, graceMs, pollMs, processEnds: true, ...(queues === undefined ? {} : { queues }) }
}

export function engineOptions({ maxConnections, staleMs, retentionMs }: EngineSettings): EngineOptions {
  return { maxConnections, staleMs, retentionMs }
}
