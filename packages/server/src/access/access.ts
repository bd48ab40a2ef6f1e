import { allows, type Route } from '@fencepost/client'
import { Lookup, type EngineDatabase } from '@fencepost/engine'
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import { rememberCaller } from './callers.ts'
import { RememberedCallers } from './remembered-callers.ts'
import { checkLoopbackName, proxyHeaderOf } from './origin.ts'
import { countTokens, findTokens, type StoredToken } from './tokens.ts'

/*
 * Who may do what. As long as there has never been a token, a server that is bound to loopback lets everybody in, as
 * an administrator named `local`, unless the request came through a proxy. From the first token on, and on any other
 * address, every request needs one.
 *
 * Tokens are looked up for every request and nothing is cached, so a revoked one is refused at once. A route marked
 * `whenAway` is the exception: while Postgres does not answer, it knows a caller by how Postgres answered last.
 */

const nobody: Caller = { name: 'anonymous', role: 'viewer', tokenId: undefined }
const local: Caller = { name: 'local', role: 'admin', tokenId: undefined }
// Another server may make the first token; this one learns it after so long at the latest.
const openForMs = 1_000

export class Access {
  readonly #database: EngineDatabase
  readonly #loopback: boolean
  readonly #tokens: Lookup<StoredToken>
  readonly #remembered = new RememberedCallers()
  #openUntil = 0

  constructor(database: EngineDatabase, options: { loopback: boolean }) {
    this.#database = database
    this.#loopback = options.loopback
    this.#tokens = new Lookup((tokens) => findTokens(database, tokens))
  }

  /** The caller, or a refusal. */
  async admit(request: FastifyRequest, { role, whenAway }: Route): Promise<Caller> {
    if (role === 'public') {
      rememberCaller(request, nobody)
      return nobody
    }
    const caller =
      whenAway === 'remembered'
        ? await this.#remembered.identify(request, () => this.#identify(request))
        : await this.#identify(request)
    rememberCaller(request, caller)
    if (allows(caller.role, role)) return caller
    throw new ApiError('role_insufficient', `This takes the role ${role}; the token has the role ${caller.role}.`, {
      details: { needed: role, role: caller.role },
    })
  }

  /** True while no token is needed. */
  async isOpen(): Promise<boolean> {
    if (!this.#loopback) return false
    if (performance.now() < this.#openUntil) return true
    const open = (await countTokens(this.#database)).all === 0
    if (open) this.#openUntil = performance.now() + openForMs
    return open
  }

  /** A token was made here: nobody is let in without one any more. */
  tokenMade(): void {
    this.#openUntil = 0
  }

  async #identify(request: FastifyRequest): Promise<Caller> {
    const { authorization } = request.headers
    if (authorization === undefined) {
      if (await this.isOpen()) {
        checkDirect(request)
        checkLoopbackName(request)
        return local
      }
      throw unauthorized('token_missing', 'Give a token: Authorization: Bearer fp_….')
    }
    const given = /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
    const token = given === undefined ? undefined : await this.#tokens.find(given)
    if (token === undefined) throw unauthorized('token_invalid', 'The token is not known, was revoked, or has expired.')
    return { name: token.name, role: token.role, tokenId: token.token_id }
  }
}

function checkDirect(request: FastifyRequest): void {
  const header = proxyHeaderOf(request)
  if (header === undefined) return
  throw unauthorized(
    'token_missing',
    `This server has no tokens, and the request came through a proxy (header ${header}), so it could be anybody's. ` +
      'Make a token: fencepost tokens create <name> --role admin.',
  )
}

function unauthorized(code: 'token_missing' | 'token_invalid', message: string): ApiError {
  return new ApiError(code, message, { headers: { 'www-authenticate': 'Bearer realm="fencepost"' } })
}
