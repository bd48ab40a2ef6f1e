/** How far ahead of the handlers to claim: what they use up in this time, so little that no lease comes near its end. */
const aheadMs = 200
const windowMs = 100

/** Measures how fast jobs end, and says how many to hold ready for it. */
export class Pace {
  readonly #max: number
  #perMs = 0
  #count = 0
  #since = performance.now()

  constructor(max: number) {
    this.#max = max
  }

  ended(): void {
    this.#count += 1
  }

  /** Slow jobs are never claimed ahead of need: another worker may be free for them. */
  get ahead(): number {
    const now = performance.now()
    const elapsedMs = now - this.#since
    if (elapsedMs > windowMs) {
      this.#perMs = this.#count / elapsedMs
      this.#count = 0
      this.#since = now
    }
    return Math.min(this.#max, Math.floor(this.#perMs * aheadMs))
  }
}
