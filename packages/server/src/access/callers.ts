import type { FastifyRequest } from 'fastify'
import type { Caller } from '../endpoint.ts'

// Who makes the requests that are under way; for the log, also those that may not do what they ask for.
const callers = new WeakMap<FastifyRequest, Caller>()

export function rememberCaller(request: FastifyRequest, caller: Caller): void {
  callers.set(request, caller)
}

/** Undefined while nobody has looked, and for requests that are refused before. */
export function callerOf(request: FastifyRequest): Caller | undefined {
  return callers.get(request)
}
