import type { z } from 'zod'
import type { ApiErrorCode } from './errors.ts'
import type { Role } from './token.ts'

/** One route of the API: what server, client, OpenAPI document and docs tests are all made from. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** With parameters in braces: /jobs/{job_id}. */
  readonly path: string
  readonly summary: string
  readonly tag: string
  /** The least role that may call it. */
  readonly role: Role | 'public'
  /** What happens while the database cannot say who calls: callers it vouched for lately are let in; refused if left out. */
  readonly whenAway?: 'remembered'
  /** Any text: an address at which nothing can be is answered 404 like one at which nothing is. */
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  /** Headers of the request that mean something here. */
  readonly requestHeaders?: Readonly<Record<string, string>>
  /** The one status of success, and its body; null where there is none, a media type where it is not JSON. */
  readonly status: 200 | 201 | 202 | 204
  readonly answer: z.ZodType | null | { readonly mediaType: string }
  /** When the caller accepts text/event-stream: what the data of its events is. */
  readonly stream?: z.ZodType
  /** Headers of the answer that mean something here. */
  readonly answerHeaders?: Readonly<Record<string, string>>
  /** What it may refuse with, beyond what every route may. */
  readonly errors: readonly ApiErrorCode[]
}

/** What any route may answer with. */
const commonErrors: readonly ApiErrorCode[] = [
  'request_invalid',
  'http_malformed',
  'origin_refused',
  'request_timeout',
  'rate_limited',
  'headers_too_large',
  'internal_error',
  'shutting_down',
]

/** All errors that a route may answer with, its own first. */
export function errorsOf(route: Route): ApiErrorCode[] {
  const body: ApiErrorCode[] = ['body_too_large', 'media_type_unsupported', 'json_malformed', 'json_too_deep']
  const access: ApiErrorCode[] =
    route.role === 'public' ? [] : ['token_missing', 'token_invalid', 'database_unavailable', 'overloaded']
  const role: ApiErrorCode[] = route.role === 'public' || route.role === 'viewer' ? [] : ['role_insufficient']
  return [...new Set([...route.errors, ...access, ...role, ...(route.method === 'GET' ? [] : body), ...commonErrors])]
}

type SchemaOf<R extends Route, K extends 'params' | 'query' | 'body'> = R[K] extends z.ZodType ? R[K] : undefined

export type ParamsOf<R extends Route> =
  SchemaOf<R, 'params'> extends z.ZodType ? z.output<SchemaOf<R, 'params'>> : object
export type QueryOf<R extends Route> = SchemaOf<R, 'query'> extends z.ZodType ? z.output<SchemaOf<R, 'query'>> : object
export type BodyOf<R extends Route> = SchemaOf<R, 'body'> extends z.ZodType ? z.output<SchemaOf<R, 'body'>> : undefined
/** What a success brings: parsed JSON, text where it is not JSON, or nothing. */
export type AnswerOf<R extends Route> = R['answer'] extends z.ZodType
  ? z.output<R['answer']>
  : R['answer'] extends null
    ? undefined
    : string

/** What a page of a list says beside its rows. */
export const nextAfter = { 'Next-After': 'Where the next page begins: give it as after. Absent on the last page.' }
