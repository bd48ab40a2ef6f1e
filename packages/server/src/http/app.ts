import { randomUUID } from 'node:crypto'
import { routes, type Route } from '@fencepost/client'
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Access } from '../access/access.ts'
import { callerOf } from '../access/callers.ts'
import { checkOrigin, preflightHeaders } from '../access/origin.ts'
import type { RateLimit } from '../access/rate-limit.ts'
import { callerKey, type Caller, type Endpoint } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import type { CheckedServerOptions } from '../options.ts'
import { givenRequestId, logAccess } from './access-log.ts'
import { parseJsonBody } from './json-body.ts'
import { refuse, refuseConnection } from './refuse.ts'
import { send } from './send.ts'
import { Unread } from './unread.ts'
import { validate } from './validate.ts'

/** What the requests of one server share. */
export interface Gate {
  access: Access
  rateLimit: RateLimit
  /** True from the moment the server is told to stop. */
  closing: () => boolean
}

const securityHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** A Fastify that answers these endpoints, every one with the same checks in the same order. */
export function createApp(endpoints: readonly Endpoint[], gate: Gate, options: CheckedServerOptions): FastifyInstance {
  const { logger } = options
  const app = fastify({
    logger: false,
    bodyLimit: options.maxBodyBytes,
    requestTimeout: options.requestTimeoutMs,
    connectionTimeout: options.idleTimeoutMs,
    ...transportOf(options),
    trustProxy: trustedProxies(options),
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    genReqId: ({ headers }) => givenRequestId(headers['x-request-id']) ?? randomUUID(),
    clientErrorHandler: refuseConnection,
    frameworkErrors: (error, request, reply) => refuse(error, request, reply as FastifyReply, logger),
    routerOptions: { maxParamLength: 1_024, ignoreTrailingSlash: false },
  })
  app.server.maxConnections = options.maxConnections
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, parseJsonBody(body as Buffer, options.maxBodyDepth))
    } catch (error) {
      done(error as Error)
    }
  })
  app.setErrorHandler((error, request, reply) => refuse(error, request, reply, logger))
  app.addHook('onRequest', async (request, reply) => {
    void reply.headers({ ...securityHeaders, 'x-request-id': request.id })
    if (gate.closing()) {
      throw new ApiError('shutting_down', 'This server is stopping: try again, at another one or later.')
    }
    // Whoever asks whether the process lives must not be told to come back later.
    if (request.routeOptions.url !== routes.healthz.path) gate.rateLimit.take(`address ${request.ip}`)
    checkOrigin(request, reply, options)
    // Now, not in the handler for what is not found: some methods are refused for their body before they get there.
    if (request.is404) await answerUnknown(endpoints, request, reply, options)
  })
  // A connection that is kept would keep a server that stops waiting for its next request.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (gate.closing()) void reply.header('connection', 'close')
    done(null, payload)
  })
  logAccess(app, logger, options)
  const unread = new Unread(options)
  for (const endpoint of endpoints) register(app, endpoint, gate, unread)
  return app
}

/** Plain HTTP, or TLS with a certificate of its own. */
function transportOf({ tls, maxHeaderBytes, headersTimeoutMs }: CheckedServerOptions) {
  const http = {
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headersTimeoutMs,
    connectionsCheckingInterval: 1_000,
  }
  // The types of Fastify tell servers apart by their transport; nothing here does.
  return tls === undefined
    ? { http }
    : ({ https: { minVersion: 'TLSv1.2', handshakeTimeout: headersTimeoutMs, ...tls, ...http } } as unknown as {
        http: typeof http
      })
}

/** Which addresses of X-Forwarded-For, counted from this server's side, are those of proxies. */
function trustedProxies({
  trustProxy,
}: CheckedServerOptions): false | string[] | ((address: string, hop: number) => boolean) {
  if (trustProxy === false) return false
  return typeof trustProxy === 'number' ? (_address, hop) => hop < trustProxy : [...trustProxy]
}

function register(app: FastifyInstance, { route, handle }: Endpoint, gate: Gate, unread: Unread): void {
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    // Before the body is read: nobody without a token makes the server parse anything.
    onRequest: async (request) => {
      const caller = await gate.access.admit(request, route)
      if (caller.tokenId !== undefined) gate.rateLimit.take(`token ${caller.tokenId}`)
    },
    handler: async (request, reply) => {
      const checked = validate(route, request)
      const caller = callerOf(request) as Caller // set above, or the request has not come so far
      const answer = await handle({ ...checked, caller, request } as Parameters<typeof handle>[0])
      if ('stream' in answer) {
        await answer.stream(reply)
        return reply
      }
      return send(route, answer, request, reply, (bytes) => unread.add(callerKey({ caller, request }), reply, bytes))
    },
  })
}

async function answerUnknown(
  endpoints: readonly Endpoint[],
  request: FastifyRequest,
  reply: FastifyReply,
  options: CheckedServerOptions,
): Promise<void> {
  const path = request.url.split('?')[0] ?? ''
  // /jobs/count is no job.
  const exact = endpoints.filter(({ route }) => route.path === path)
  const found = exact.length > 0 ? exact : endpoints.filter(({ route }) => patternOf(route).test(path))
  const there = found.map(({ route }) => route.method)
  if (there.length === 0) throw new ApiError('route_unknown', 'There is no such route; /docs tells of those there are.')
  const { origin } = request.headers
  const isPreflight = request.method === 'OPTIONS' && request.headers['access-control-request-method'] !== undefined
  if (isPreflight && origin !== undefined && options.corsOrigins.includes(origin)) {
    await reply.code(204).headers(preflightHeaders).send()
    return
  }
  const allow = [...new Set(there.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))].join(', ')
  throw new ApiError('method_not_allowed', `This route has no ${request.method}.`, {
    headers: { allow },
    details: { allow },
  })
}

function patternOf({ path }: Route): RegExp {
  return new RegExp(`^${path.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`)
}
