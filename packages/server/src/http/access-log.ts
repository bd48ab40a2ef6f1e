import type { Logger } from '@fencepost/engine'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { callerOf } from '../access/callers.ts'

const denied: ReadonlySet<number> = new Set([401, 403])

/** Logs every request if asked to, and in any case those that were denied, and changes of tokens and of drain. */
export function logAccess(app: FastifyInstance, logger: Logger, options: { accessLog: boolean }): void {
  app.addHook('onResponse', async (request, reply) => {
    const { statusCode: status } = reply
    const line = () => ({ ...aboutRequest(request), status, ms: Math.round(reply.elapsedTime * 10) / 10 })
    if (denied.has(status)) logger.warn(line(), 'request_denied')
    else if (options.accessLog) logger.info(line(), 'request')
    if (status < 300 && isAdministrative(request)) logger.info(line(), 'administered')
  })
}

/** The fields by which lines about one request are found. */
export function aboutRequest(request: FastifyRequest): Record<string, unknown> {
  const { id, ip, method, url, headers } = request
  return {
    request_id: id,
    ...(headers.traceparent === undefined ? {} : { trace_id: traceIdOf(headers.traceparent) }),
    caller: callerOf(request)?.name ?? null,
    address: ip,
    method,
    // Without the query, which may hold what somebody took for private.
    path: url.split('?')[0]?.slice(0, 512),
  }
}

function isAdministrative({ method, routeOptions: { url = '' } }: FastifyRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && /^\/(tokens|drain)\b/.test(url)
}

const requestIdPattern = /^[\w.:/+=-]{1,128}$/

/** The request id that a proxy or caller gave, if it can be logged and sent back as it is. */
export function givenRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && requestIdPattern.test(header) ? header : undefined
}

/** The trace of a W3C `traceparent`; undefined for one that is not valid. */
function traceIdOf(header: string | string[] | undefined): string | undefined {
  const match = typeof header === 'string' ? /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(header) : null
  return match?.[1] === '0'.repeat(32) ? undefined : match?.[1]
}
