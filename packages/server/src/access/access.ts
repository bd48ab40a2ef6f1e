import { allows, type Route } from '@fencepost/client'
import { Lookup, type EngineDatabase } from '@fencepost/engine'
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import { checkLoopbackName } from './origin.ts'
import { countTokens, findTokens, type StoredToken } from './tokens.ts'

/*
 * Who may do what. As long as there has never been a token, a server that is bound to loopback lets everybody in, as
 * an administrator named `local`. From the first token on, and on any other address, every request needs one.
 */

const nobody: Caller = { name: 'anonymous', role: 'viewer', tokenId: undefined }
const local: Caller = { name: 'local', role: 'admin', tokenId: undefined }
// Another server may make the first token; this one learns it after so long at the latest.
const openForMs = 1_000

export class Access {
  readonly #database: EngineDatabase
  readonly #loopback: boolean
  readonly #tokens: Lookup<StoredToken>
  #openUntil = 0

  constructor(database: EngineDatabase, options: { loopback: boolean }) {
    this.#database = database
    this.#loopback = options.loopback
    this.#tokens = new Lookup((tokens) => findTokens(database, tokens))
  }

  /** The caller, or a refusal. */
  async admit(request: FastifyRequest, { role }: Route): Promise<Caller> {
    if (role === 'public') return nobody
    const caller = await this.#identify(request)
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
        checkLoopbackName(request)
        return local
      }
      throw unauthorized('token_missing', 'Give a token: Authorization: Bearer fp_….')
    }
    const given = /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
    const token = given === undefined ? undefined : await this.#tokens.find(given)
    if (token === undefined) throw unauthorized('token_invalid', 'The token is not known, or was revoked.')
    return { name: token.name, role: token.role, tokenId: token.token_id }
  }
}

function unauthorized(code: 'token_missing' | 'token_invalid', message: string): ApiError {
  return new ApiError(code, message, { headers: { 'www-authenticate': 'Bearer realm="fencepost"' } })
}
