import { setTimeout as sleep } from 'node:timers/promises'
import { IcebergError, type IcebergErrorCode } from '../errors.ts'
import { parseJson, stringifyJson, type Json } from '../json/json.ts'
import { parseJsonSteps } from '../json/parse-steps.ts'
import { inSlices } from '../json/steps.ts'
import { isObject } from '../json/object-reader.ts'
import { TokenSource, type RestAuth } from './rest-auth.ts'

export interface RestHttpOptions {
  auth: RestAuth
  headers: Readonly<Record<string, string>>
  /** For one request, its answer included. */
  timeoutMs: number
  /** Tries of a request that changes nothing. */
  maxAttempts: number
}

export interface RestRequest {
  method: 'GET' | 'POST' | 'DELETE' | 'HEAD'
  path: string
  query?: Readonly<Record<string, string>>
  body?: Json
  headers?: Readonly<Record<string, string>>
  /** Ends the request, and the pauses before it is sent again. */
  signal?: AbortSignal
}

export interface RestAnswer {
  status: number
  body: Json | undefined
  headers: Headers
}

/** The server did not do it, and said why. */
export class RestRefusal extends Error {
  readonly status: number
  /** The name that the protocol gives the error, such as NoSuchTableException. */
  readonly type: string
  readonly retryAfterMs: number | undefined

  constructor(status: number, type: string, message: string, retryAfterMs: number | undefined) {
    super(message)
    this.name = 'RestRefusal'
    this.status = status
    this.type = type
    this.retryAfterMs = retryAfterMs
  }
}

/** No answer, or half of one. */
export class RestSilence extends Error {
  /** True when not even a connection was made, so the server cannot have done anything. */
  readonly neverSent: boolean

  constructor(message: string, cause: unknown, neverSent: boolean) {
    super(message, { cause })
    this.name = 'RestSilence'
    this.neverSent = neverSent
  }
}

// Who is asked to come again later than this is told so, and does not wait here.
const maxPauseMs = 60_000

/** Requests to a REST catalog: who asks, how often, and lossless JSON. */
export class RestHttp {
  readonly #url: string
  readonly #options: RestHttpOptions
  readonly #tokens: TokenSource

  constructor(url: string, options: RestHttpOptions) {
    this.#url = url.replace(/\/+$/, '')
    this.#options = options
    this.#tokens = new TokenSource(options.auth, this.#url, options.timeoutMs)
  }

  /** A request that changes nothing, so it is sent again when the server is busy or silent. */
  async read(request: RestRequest): Promise<RestAnswer> {
    for (let tried = 1; ; tried++) {
      try {
        return await this.send(request)
      } catch (error) {
        const asked = error instanceof RestRefusal ? (error.retryAfterMs ?? 0) : 0
        if (!mayPass(error) || tried >= this.#options.maxAttempts || asked > maxPauseMs) throw error
        request.signal?.throwIfAborted()
        await sleep(Math.max(asked, 50 * 2 ** tried), undefined, request.signal && { signal: request.signal })
      }
    }
  }

  /** One request, and a second one only when the first was refused for its token. */
  async send(request: RestRequest): Promise<RestAnswer> {
    const token = await this.#tokens.token()
    try {
      return await this.#once(request, token)
    } catch (error) {
      const expired = error instanceof RestRefusal && (error.status === 401 || error.status === 419)
      if (!expired || !this.#tokens.canRenew(token)) throw error
      return this.#sendRenewed(request, token, error)
    }
  }

  async #sendRenewed(request: RestRequest, refused: string | undefined, refusal: RestRefusal): Promise<RestAnswer> {
    try {
      const renewed = await this.#tokens.token()
      if (renewed === refused) throw refusal
      return await this.#once(request, renewed)
    } catch (error) {
      if (error instanceof RestRefusal || request.method !== 'POST') throw error
      // A gateway may have repeated the first request, and an earlier copy of it may be applied. So it counts as sent.
      throw new RestSilence((error as Error).message, error, false)
    }
  }

  async #once(request: RestRequest, token: string | undefined): Promise<RestAnswer> {
    const { method, path, query, body, headers, signal } = request
    const limit = AbortSignal.timeout(this.#options.timeoutMs)
    const search = query === undefined ? '' : `?${new URLSearchParams(query).toString()}`
    const url = `${this.#url}/${path}${search}`
    const what = `${method} ${path}`
    let answer: Response
    let text: string
    try {
      answer = await fetch(url, {
        method,
        headers: {
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...this.#options.headers,
          ...headers,
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        ...(body !== undefined && { body: stringifyJson(body) }),
        signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
        redirect: 'error',
      })
      text = await answer.text()
    } catch (cause) {
      throw new RestSilence(
        `The catalog at ${this.#url} did not answer ${what}: ${causeOf(cause)}`,
        cause,
        neverSent(cause),
      )
    }
    if (answer.status === 304) return { status: 304, body: undefined, headers: answer.headers }
    if (!answer.ok) throw refusal(answer, text, what)
    try {
      const json = text === '' ? undefined : await inSlices(parseJsonSteps(Buffer.from(text), `The answer to ${what}`))
      return { status: answer.status, body: json, headers: answer.headers }
    } catch (cause) {
      throw new RestSilence(
        `The catalog at ${this.#url} answered ${what} with something that is not JSON.`,
        cause,
        false,
      )
    }
  }
}

function mayPass(error: unknown): boolean {
  if (error instanceof RestRefusal) return error.status === 429 || error.status >= 500
  // The other is a token that could not be had.
  return error instanceof RestSilence || (error instanceof IcebergError && error.code === 'catalog_unavailable')
}

function refusal(answer: Response, text: string, what: string): RestRefusal {
  let type = ''
  let message = text.slice(0, 500)
  try {
    const json = parseJson(text)
    const error = isObject(json) ? json['error'] : undefined
    if (isObject(error)) {
      type = typeof error['type'] === 'string' ? error['type'] : ''
      message = typeof error['message'] === 'string' ? error['message'] : message
    }
  } catch {
    // Not from the catalog itself: a gateway before it.
  }
  return new RestRefusal(
    answer.status,
    type,
    `${what}: ${answer.status} ${type} ${message}`,
    retryAfterMs(answer.headers),
  )
}

/** Seconds, or a date. */
function retryAfterMs(headers: Headers, now: number = Date.now()): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

function causeOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}

function neverSent(error: unknown): boolean {
  const code = ((error as Error).cause as { code?: string } | undefined)?.code ?? ''
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'].includes(
    code,
  )
}

/** What a failed request means when nothing more special is known of it. */
export function generalError(error: unknown): Error {
  // A token that could not be renewed has an error of its own.
  if (error instanceof RestSilence && error.cause instanceof IcebergError) return error.cause
  if (error instanceof RestSilence) return new IcebergError('catalog_unavailable', error.message, { cause: error })
  if (!(error instanceof RestRefusal)) return error as Error
  const { status, type, retryAfterMs: wait } = error
  const details = { status, type, ...(wait !== undefined && { retryAfterMs: wait }) }
  return new IcebergError(codeOf(status), error.message, { details, cause: error })
}

function codeOf(status: number): IcebergErrorCode {
  if (status === 401 || status === 419) return 'catalog_unauthorized'
  if (status === 403) return 'catalog_denied'
  if (status === 404 || status === 405 || status === 406 || status === 501) return 'catalog_unsupported'
  if (status === 429 || status >= 500) return 'catalog_unavailable'
  return 'catalog_rejected'
}
