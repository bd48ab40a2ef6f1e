import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../error.ts'
import { isLoopback } from './loopback.ts'

/*
 * Web pages. A page of another origin can make a browser send simple requests here without asking; such requests are
 * refused by their Origin. A page can also have a name of its own resolve to 127.0.0.1: while no token is needed, a
 * request must call this server by a loopback name. Limit: this is about browsers; other programs write any header.
 */

export interface OriginOptions {
  /** Origins whose pages may call the API; none if left out. */
  corsOrigins: readonly string[]
}

/** Refuses requests of pages that may not call the API, and tells the browsers of those that may. */
export function checkOrigin(request: FastifyRequest, reply: FastifyReply, options: OriginOptions): void {
  const { origin } = request.headers
  if (origin === undefined) return
  void reply.header('vary', 'Origin')
  if (options.corsOrigins.includes(origin)) {
    void reply.header('access-control-allow-origin', origin)
    void reply.header(
      'access-control-expose-headers',
      'location, retry-after, idempotency-replayed, next-after, etag, x-request-id',
    )
    return
  }
  if (hostOf(origin) === request.headers.host) return
  throw new ApiError('origin_refused', 'Pages of this origin may not call the API.', { details: { origin } })
}

/** Refuses a request that came by a name which is not loopback's, for a server that lets everybody in. */
export function checkLoopbackName(request: FastifyRequest): void {
  const host = request.headers.host ?? ''
  if (isLoopback(host.replace(/:\d+$/, ''))) return
  throw new ApiError(
    'origin_refused',
    'Without tokens this server answers only to loopback names: localhost, 127.0.0.1.',
  )
}

// What proxies add. Behind one, every caller has the proxy's address, so loopback says nothing about who it is.
const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via']

/** The header by which a request shows that it came through a proxy. */
export function proxyHeaderOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return proxyHeaders.find((name) => headers[name] !== undefined)
}

/** The headers that answer a browser's question whether it may send a request. */
export const preflightHeaders = {
  'access-control-allow-methods': 'GET, POST, PUT, DELETE',
  'access-control-allow-headers':
    'authorization, content-type, idempotency-key, last-event-id, traceparent, x-request-id',
  'access-control-max-age': '600',
}

function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
