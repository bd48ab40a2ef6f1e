import { routes } from '@fencepost/client'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { Access } from './access/access.ts'
import { isLoopback } from './access/loopback.ts'
import { RateLimit } from './access/rate-limit.ts'
import { countTokens } from './access/tokens.ts'
import { endpoint, type Endpoint } from './endpoint.ts'
import { AllFeed } from './events/all-feed.ts'
import { eventEndpoints, type Live } from './events/endpoints.ts'
import { JobFeed } from './events/job-feed.ts'
import { Listening } from './events/listening.ts'
import { Streams } from './events/streams.ts'
import { createApp } from './http/app.ts'
import { bulkEndpoints } from './jobs/bulk-endpoints.ts'
import { filtersOf } from './jobs/filter.ts'
import { jobEndpoints } from './jobs/endpoints.ts'
import { JobReader } from './jobs/job-reader.ts'
import { JobPages } from './jobs/page.ts'
import { presenter } from './jobs/present.ts'
import { submitEndpoint } from './jobs/submit.ts'
import { Meter } from './metrics/meter.ts'
import { descriptionEndpoints } from './openapi/endpoints.ts'
import {
  checkServerOptions,
  requireProtection,
  ServerStartError,
  type CheckedServerOptions,
  type ServerOptions,
} from './options.ts'
import { serverMigrations } from './migrations.ts'
import { scheduleEndpoints } from './schedules/endpoints.ts'
import { queueEndpoints } from './queues/endpoints.ts'
import { healthEndpoints, serviceEndpoints, tokenEndpoints } from './service.ts'
import { Upkeep } from './upkeep.ts'

/** A server that listens. */
export interface Server {
  /** Where it is: http://127.0.0.1:8080. */
  readonly url: string
  readonly port: number
  /** Finishes requests, ends streams with an event, refuses new requests; leaves the engine open. */
  close(): Promise<void>
}

/** Opens the HTTP API on an engine, and begins to listen. */
export async function openServer(options: ServerOptions): Promise<Server> {
  const checked = checkServerOptions(options)
  const { engine, host, port } = checked
  await engine.prepareSchema([serverMigrations, ...checked.applications.flatMap(({ migrations }) => migrations ?? [])])
  requireProtection(host, (await countTokens(engine.database)).usable)
  const access = new Access(engine.database, { loopback: isLoopback(host) })
  const live = openLive(checked, access)
  const state = { closing: false }
  const rateLimit = new RateLimit({ perSecond: checked.rateLimitPerSecond, burst: checked.rateLimitBurst })
  const meter = new Meter({
    ...checked,
    streams: () => live.streams.size,
    more: checked.applications.flatMap(({ metrics }) => metrics ?? []),
  })
  const app = createApp(
    endpointsOf(checked, access, live, meter),
    { access, rateLimit, closing: () => state.closing },
    checked,
  )
  app.addHook('onResponse', async ({ method, routeOptions }, { statusCode, elapsedTime }) => {
    meter.answered(method, routeOptions.url ?? 'unknown', statusCode, elapsedTime / 1000)
  })
  try {
    await app.listen({ host, port })
  } catch (error) {
    await Promise.all([closeLive(live), meter.close()])
    throw new ServerStartError(
      'address_unavailable',
      `Cannot listen on ${host}:${port}: ${(error as Error).message}.`,
      {
        cause: error,
      },
    )
  }
  const upkeep = new Upkeep(engine, checked)
  const backgrounds = checked.applications.flatMap(({ start }) => start?.(engine, checked.logger) ?? [])
  let closed: Promise<void> | undefined
  const { port: bound } = app.server.address() as AddressInfo
  return {
    url: `${checked.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    port: bound,
    close: () => {
      state.closing = true
      live.streams.close()
      const parts = [() => closeLive(live), () => upkeep.close(), () => meter.close()]
      closed ??= close(app, [...parts, ...backgrounds.map((one) => () => one.close())], checked)
      return closed
    },
  }
}

function endpointsOf(options: CheckedServerOptions, access: Access, live: Live, meter: Meter): readonly Endpoint[] {
  const { engine, applications } = options
  const present = presenter(engine, applications)
  const jobs = new JobReader(engine)
  const payloadOf = applications.flatMap(({ payloadInListsOf }) => payloadInListsOf ?? [])
  const pages = new JobPages(present, { ...options, payloadOf })
  const endpoints = [
    ...jobEndpoints(engine, jobs, pages, present, filtersOf(applications)),
    ...bulkEndpoints(engine, present, filtersOf(applications)),
    ...eventEndpoints(engine, jobs, live, options),
    submitEndpoint(engine, jobs, present, options.logger),
    ...scheduleEndpoints(engine, options),
    ...queueEndpoints(engine),
    ...serviceEndpoints(engine, pages),
    ...tokenEndpoints(engine, access, live.streams),
    ...healthEndpoints(engine),
    endpoint(routes.metrics, async () => ({ body: await meter.text() })),
    ...applications.flatMap((application) => application.endpoints?.(engine, present) ?? []),
  ]
  return [...endpoints, ...descriptionEndpoints(endpoints)]
}

function openLive(options: CheckedServerOptions, access: Access): Live {
  const { engine, eventPollMs: pollMs, logger } = options
  const jobFeed = new JobFeed(engine.feed, { pollMs, logger })
  const allFeed = new AllFeed(engine.feed, { pollMs, logger })
  const listening = new Listening(engine, logger, () => {
    jobFeed.trigger()
    allFeed.trigger()
  })
  const streams = new Streams(engine.database, { ...options, isOpen: () => access.isOpen() })
  return { jobFeed, allFeed, listening, streams }
}

async function closeLive({ jobFeed, allFeed, listening, streams }: Live): Promise<void> {
  streams.close()
  await Promise.all([jobFeed.close(), allFeed.close(), listening.close()])
}

async function close(
  app: FastifyInstance,
  parts: readonly (() => Promise<void>)[],
  { closeDelayMs, closeTimeoutMs }: CheckedServerOptions,
): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, closeDelayMs))
  const timer = setTimeout(() => app.server.closeAllConnections(), closeTimeoutMs)
  await app.close()
  clearTimeout(timer)
  await Promise.all(parts.map((part) => part()))
}
