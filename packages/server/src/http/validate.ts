import type { Route } from '@fencepost/client'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { ApiError } from '../error.ts'

interface Checked {
  params: unknown
  query: unknown
  body: unknown
}

/** What a request brings, as the schemas of its route read it; anything they do not know is refused. */
export function validate(route: Route, request: FastifyRequest): Checked {
  return {
    params: route.params === undefined ? {} : check(route.params, request.params, 'path'),
    query: checkQuery(route, request.query as Record<string, unknown>),
    body: checkBody(route, request.body),
  }
}

function checkQuery(route: Route, query: Record<string, unknown>): unknown {
  if (route.query !== undefined) return check(route.query, query, 'query')
  const [unknown] = Object.keys(query)
  if (unknown !== undefined) throw invalid([{ path: `query.${unknown}`, message: 'This route has no such parameter' }])
  return {}
}

function checkBody(route: Route, body: unknown): unknown {
  if (route.body !== undefined) return check(route.body, body, 'body')
  // A client may send {} where nothing is asked for; anything in it would be ignored, so it is refused.
  if (body === undefined || body === null || (typeof body === 'object' && Object.keys(body).length === 0))
    return undefined
  throw invalid([{ path: 'body', message: 'This route takes no body' }])
}

function check(schema: z.ZodType, value: unknown, where: string): unknown {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues.slice(0, 20).map((issue) => ({
    path: [where, ...issue.path.map(String)].join('.').slice(0, 200),
    message: issue.message.slice(0, 500),
  }))
  throw invalid(issues)
}

function invalid(issues: readonly { path: string; message: string }[]): ApiError {
  const first = issues[0]
  return new ApiError('request_invalid', `The request is not valid: ${first?.path}: ${first?.message}.`, {
    details: { issues },
  })
}
