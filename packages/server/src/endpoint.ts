import type { AnswerOf, BodyOf, ParamsOf, QueryOf, Role, Route } from '@fencepost/client'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Who makes a request. */
export interface Caller {
  /** What is recorded as `by` in the events of what is changed. */
  name: string
  role: Role
  /** Undefined where no tokens are in use, or the route is public. */
  tokenId: string | undefined
}

/** A request that has passed every check of its route. */
export interface Call<R extends Route = Route> {
  params: ParamsOf<R>
  query: QueryOf<R>
  body: BodyOf<R>
  caller: Caller
  request: FastifyRequest
}

/** Whose a request is, where callers are told apart: a token's, or an address's while no token is needed. */
export function callerKey({ caller, request }: Pick<Call, 'caller' | 'request'>): string {
  return caller.tokenId === undefined ? `address ${request.ip}` : `token ${caller.tokenId}`
}

/** What a request is answered with. */
export type Answer<R extends Route = Route> =
  | { body: AnswerOf<R>; headers?: Record<string, string> }
  /** The body as JSON text, where that was made already. */
  | { json: string; headers?: Record<string, string> }
  /** Takes over the connection. */
  | { stream: (reply: FastifyReply) => Promise<void> }

/** A route, and what handles it. */
export interface Endpoint {
  readonly route: Route
  readonly handle: (call: Call) => Promise<Answer>
}

/** Puts a route and its handler together; the one place where the types of its schemas are let go. */
export function endpoint<R extends Route>(route: R, handle: (call: Call<R>) => Promise<Answer<R>>): Endpoint {
  return { route, handle: handle as unknown as Endpoint['handle'] }
}
