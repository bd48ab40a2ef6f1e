import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../endpoint.ts'
import { ApiError } from '../error.ts'
import { proxyHeaderOf } from './origin.ts'

/*
 * Callers of a route that must answer while Postgres does not: /metrics, which has to say just that.
 *
 * A caller that Postgres vouched for is remembered for 10 minutes, by a hash of the headers that say who it is. It is let in by
 * memory only when Postgres fails or takes too long. Limit: a token revoked while Postgres is away keeps reading this
 * route for so long.
 */

const rememberMs = 600_000
const answerMs = 2_000
const maxRemembered = 1_000

interface Remembered {
  caller: Caller
  until: number
}

export class RememberedCallers {
  readonly #callers = new Map<string, Remembered>()

  /** The caller by Postgres, or, if that cannot be asked, by memory. */
  async identify({ headers }: Pick<FastifyRequest, 'headers'>, ask: () => Promise<Caller>): Promise<Caller> {
    // Everything that the answer depends on.
    const shown = JSON.stringify([headers.authorization, headers.host, proxyHeaderOf({ headers })])
    const key = createHash('sha256').update(shown).digest('base64')
    const known = this.#callers.get(key)
    const remembered = known !== undefined && known.until > performance.now() ? known.caller : undefined
    const asking = ask()
    try {
      const caller = await (remembered === undefined ? asking : orTimeout(asking))
      this.#remember(key, caller)
      return caller
    } catch (error) {
      // A refusal is an answer.
      if (error instanceof ApiError) this.#callers.delete(key)
      else if (remembered !== undefined) return remembered
      throw error
    }
  }

  #remember(key: string, caller: Caller): void {
    this.#callers.delete(key)
    this.#callers.set(key, { caller, until: performance.now() + rememberMs })
    if (this.#callers.size > maxRemembered) this.#callers.delete(this.#callers.keys().next().value ?? '')
  }
}

async function orTimeout<T>(asking: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Postgres did not answer within ${answerMs} ms`)), answerMs)
  })
  asking.catch(() => {}) // it may fail after it was given up
  try {
    return await Promise.race([asking, late])
  } finally {
    clearTimeout(timer)
  }
}
