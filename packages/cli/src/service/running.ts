import type { Engine, EngineOptions, Logger, WorkOptions } from '@fencepost/engine'
import { openServer, type Server } from '@fencepost/server'
import type { EngineSettings, ServerSettings, WorkerSettings } from './settings.ts'

/** A server with the settings that were configured. */
export async function openConfiguredServer(engine: Engine, settings: ServerSettings, logger: Logger): Promise<Server> {
  const { host, port, corsOrigins, trustProxy, maxBodyBytes, rateLimitPerSecond } = settings
  return openServer({
    engine,
    logger,
    host,
    port,
    trustProxy: trustProxyOf(trustProxy),
    maxBodyBytes,
    rateLimitPerSecond,
    // As the server has it by default: twice of what a second allows.
    rateLimitBurst: 2 * rateLimitPerSecond,
    ...(corsOrigins === undefined ? {} : { corsOrigins }),
  })
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
