import { z } from 'zod'
import { AnswerTimeoutError, deadline } from './deadline.ts'
import { errorAnswer, FencepostApiError } from './errors.ts'
import type { AnswerOf, BodyOf, ParamsOf, QueryOf, Route } from './route.ts'

/** Where a client sends its requests, and as whom. */
export interface Connection {
  url: string
  token: string | undefined
  fetch: typeof globalThis.fetch
  /** How long an answer may take; a stream only until its headers. */
  timeoutMs: number
}

/** What a call may be given beside what its route asks for. */
export interface CallOptions {
  signal?: AbortSignal | undefined
}

export interface RouteInput<R extends Route> {
  params?: ParamsOf<R>
  query?: QueryOf<R>
  body?: R['body'] extends z.ZodType ? z.input<R['body']> : BodyOf<R>
  headers?: Record<string, string>
}

export interface Answered<R extends Route> {
  body: AnswerOf<R>
  headers: Headers
}

/** Calls a route and checks what comes back against its schema. */
export async function call<R extends Route>(
  connection: Connection,
  route: R,
  input: RouteInput<R>,
  options: CallOptions = {},
): Promise<Answered<R>> {
  const { signal, end } = deadline(connection.timeoutMs, options.signal)
  try {
    return await answerTo(connection, route, input, signal)
  } finally {
    end()
  }
}

async function answerTo<R extends Route>(
  connection: Connection,
  route: R,
  input: RouteInput<R>,
  signal: AbortSignal,
): Promise<Answered<R>> {
  const response = await send(connection, route, input, { accept: acceptOf(route), signal })
  if (route.answer === null) {
    await response.body?.cancel()
    return { body: undefined as AnswerOf<R>, headers: response.headers }
  }
  const text = await textOf(response)
  if (!(route.answer instanceof z.ZodType)) return { body: text as AnswerOf<R>, headers: response.headers }
  const parsed = route.answer.safeParse(jsonOf(text, response.status))
  if (parsed.success) return { body: parsed.data as AnswerOf<R>, headers: response.headers }
  throw unreadable(response.status, parsed.error.message)
}

/** Opens a stream: the headers have to come in time, what follows may take as long as it likes. */
export async function openStream<R extends Route>(
  connection: Connection,
  route: R,
  input: RouteInput<R>,
  options: CallOptions,
): Promise<Response> {
  const { signal, clear, end } = deadline(connection.timeoutMs, options.signal)
  try {
    const response = await send(connection, route, input, { accept: 'text/event-stream', signal })
    clear()
    return response
  } catch (error) {
    end()
    throw error
  }
}

/** Sends a request; an answer that is no success is thrown. */
async function send<R extends Route>(
  connection: Connection,
  route: R,
  { params, query, body, headers }: RouteInput<R>,
  { accept, signal }: { accept: string; signal: AbortSignal },
): Promise<Response> {
  const url = `${connection.url}${pathOf(route.path, params as Record<string, string> | undefined)}${searchOf(query)}`
  let response: Response
  try {
    response = await connection.fetch(url, {
      method: route.method,
      headers: {
        accept,
        ...(connection.token === undefined ? {} : { authorization: `Bearer ${connection.token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal,
    })
  } catch (error) {
    if (signal.aborted && !(signal.reason instanceof AnswerTimeoutError)) throw error
    throw new FencepostApiError(
      { code: 'unreachable', message: `${addressOf(connection.url)} does not answer: ${reasonOf(error)}.`, status: 0 },
      { cause: error },
    )
  }
  if (response.ok) return response
  throw await refusalOf(response)
}

/** The address as it may be shown: without a user and password. */
function addressOf(url: string): string {
  return url.replace(/^(\w+:\/\/)[^/?#]*@/, '$1')
}

function acceptOf({ answer }: Route): string {
  return answer === null || answer instanceof z.ZodType ? 'application/json' : answer.mediaType
}

function pathOf(path: string, params: Record<string, string> = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

function searchOf(query: object | undefined): string {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null)
  if (given.length === 0) return ''
  return `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)])).toString()}`
}

async function refusalOf(response: Response): Promise<FencepostApiError> {
  const text = await textOf(response)
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retryAfterSeconds = Number.isFinite(seconds) ? seconds : undefined
  const parsed = errorAnswer.safeParse(tryJson(text))
  if (!parsed.success) {
    const message = `The answer has status ${response.status} and is not one of this API: is the address right?`
    return new FencepostApiError({ code: 'answer_unreadable', message, status: response.status }, { retryAfterSeconds })
  }
  const { code, message, details } = parsed.data.error
  return new FencepostApiError({ code, message, status: response.status }, { details, retryAfterSeconds })
}

async function textOf(response: Response): Promise<string> {
  try {
    return await response.text()
  } catch (error) {
    throw new FencepostApiError(
      { code: 'unreachable', message: `The connection broke during the answer: ${reasonOf(error)}.`, status: 0 },
      { cause: error },
    )
  }
}

function jsonOf(text: string, status: number): unknown {
  const value = tryJson(text)
  if (value === undefined) throw unreadable(status, 'it is not JSON')
  return value
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function unreadable(status: number, why: string): FencepostApiError {
  return new FencepostApiError({
    code: 'answer_unreadable',
    message: `The answer does not fit the contract of this client: ${why}.`,
    status,
  })
}

function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string }
  return cause?.code ?? cause?.message ?? message ?? String(error)
}
