import { IcebergError } from '../errors.ts'
import { parseJson } from '../json/json.ts'
import { ObjectReader } from '../json/object-reader.ts'

/** How a REST catalog knows who asks. */
export type RestAuth =
  | { readonly type: 'none' }
  /** A token that somebody else renews, or a function that gives the present one. */
  | { readonly type: 'bearer'; readonly token: string | (() => Promise<string>) }
  /** OAuth2 client credentials: tokens are asked for, and renewed before they expire. */
  | {
      readonly type: 'oauth2'
      readonly clientId: string
      readonly clientSecret: string
      /** Default: `v1/oauth/tokens` of the catalog, as older servers have it. */
      readonly tokenUrl?: string
      /** Default "catalog". */
      readonly scope?: string
      /** Further fields of the token request, such as audience or resource. */
      readonly parameters?: Readonly<Record<string, string>>
    }

const renewBeforeMs = 30_000

/** Gives the token to send, and a new one when the old has been refused. */
export class TokenSource {
  readonly #auth: RestAuth
  readonly #tokenUrl: string
  readonly #timeoutMs: number
  #held: { token: string; renewAt: number } | undefined
  #asking: Promise<string> | undefined

  constructor(auth: RestAuth, catalogUrl: string, timeoutMs: number) {
    this.#auth = auth
    this.#tokenUrl = (auth.type === 'oauth2' ? auth.tokenUrl : undefined) ?? `${catalogUrl}/v1/oauth/tokens`
    this.#timeoutMs = timeoutMs
  }

  async token(): Promise<string | undefined> {
    switch (this.#auth.type) {
      case 'none':
        return undefined
      case 'bearer':
        return typeof this.#auth.token === 'string' ? this.#auth.token : this.#auth.token()
      case 'oauth2':
        if (this.#held !== undefined && performance.now() < this.#held.renewAt) return this.#held.token
        // Many requests at once ask for one token.
        this.#asking ??= this.#ask().finally(() => (this.#asking = undefined))
        return this.#asking
    }
  }

  /** Whether there is another token to try after the server has refused this one. */
  canRenew(refused: string | undefined): boolean {
    if (this.#auth.type === 'oauth2') {
      if (this.#held?.token === refused) this.#held = undefined
      return true
    }
    return this.#auth.type === 'bearer' && typeof this.#auth.token === 'function'
  }

  async #ask(): Promise<string> {
    if (this.#auth.type !== 'oauth2') throw new Error('only OAuth2 asks for tokens')
    const { clientId, clientSecret, scope = 'catalog', parameters } = this.#auth
    const form = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
      scope,
      ...parameters,
    })
    const { answer, text } = await this.#post(form)
    if (!answer.ok) {
      // Never the body of the request, which holds the secret; a server may send it back.
      throw new IcebergError(
        answer.status >= 500 || answer.status === 429 ? 'catalog_unavailable' : 'catalog_unauthorized',
        `${this.#tokenUrl} gave no token to the client ${clientId} (${answer.status}): ${text.replaceAll(clientSecret, '…').slice(0, 300)}`,
        { details: { status: answer.status } },
      )
    }
    const { token, lifeMs } = readToken(text, this.#tokenUrl)
    // A short life is used for half of it, rather than never.
    this.#held = { token, renewAt: performance.now() + Math.max(lifeMs - renewBeforeMs, lifeMs / 2) }
    return token
  }

  async #post(form: URLSearchParams): Promise<{ answer: Response; text: string }> {
    try {
      const answer = await fetch(this.#tokenUrl, {
        method: 'POST',
        body: form,
        headers: { accept: 'application/json' },
        signal: AbortSignal.timeout(this.#timeoutMs),
        redirect: 'error', // the secret goes nowhere else
      })
      return { answer, text: await answer.text() }
    } catch (cause) {
      throw new IcebergError('catalog_unavailable', `${this.#tokenUrl} could not be reached for a token.`, { cause })
    }
  }
}

function readToken(text: string, tokenUrl: string): { token: string; lifeMs: number } {
  const what = `The answer of ${tokenUrl}`
  try {
    const reader = new ObjectReader(parseJson(text, what), what)
    const token = reader.string('access_token')
    return { token, lifeMs: (reader.optionalInt('expires_in') ?? Number.POSITIVE_INFINITY) * 1000 }
  } catch (cause) {
    throw new IcebergError('catalog_invalid', `${what} is not a token.`, { cause })
  }
}
