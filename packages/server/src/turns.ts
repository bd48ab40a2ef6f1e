import { ApiError } from './error.ts'

// How many of one caller may wait: more than any client of ours asks for at once.
const maxWaitingPerCaller = 200

/**
 * Lets a few at once do something that takes memory; the others wait for their turn. The callers take turns too: one who
 * asks for much waits for himself, and beyond a bound is refused.
 */
export class Turns {
  /** Who waits, by caller; the caller whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>()
  #free: number

  constructor(atOnce: number) {
    this.#free = atOnce
  }

  /** Does the work when it is its turn, or refuses it if too much of this caller waits already. */
  async take<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if ((this.#waiting.get(caller)?.length ?? 0) >= maxWaitingPerCaller) {
      throw new ApiError('overloaded', `${maxWaitingPerCaller} requests of this caller wait for large values already.`)
    }
    return this.takeUnrefused(caller, work)
  }

  /** The same for what may not be refused: the answer to a change that has been made. */
  async takeUnrefused<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.#free === 0) await this.#wait(caller)
    else this.#free -= 1
    try {
      return await work()
    } finally {
      this.#next()
    }
  }

  #wait(caller: string): Promise<void> {
    return new Promise((resolve) => {
      const own = this.#waiting.get(caller)
      if (own === undefined) this.#waiting.set(caller, [resolve])
      else own.push(resolve)
    })
  }

  #next(): void {
    const [first] = this.#waiting
    if (first === undefined) {
      this.#free += 1
      return
    }
    const [caller, own] = first
    const begin = own.shift()
    this.#waiting.delete(caller)
    if (own.length > 0) this.#waiting.set(caller, own) // behind the others
    begin?.()
  }
}
