/**
 * Bytes that may be in use at the same time. Who finds none left waits, first come first served. More than there are
 * in all may be used by one alone.
 */
export class ByteBudget {
  readonly #maxBytes: number
  #usedBytes = 0
  readonly #waiting: { bytes: number; go: () => void }[] = []

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** Runs `work` while so many bytes are kept for it. It must not ask for more: two could wait for each other. */
  async with<T>(wanted: number, work: () => Promise<T>): Promise<T> {
    const bytes = Math.min(wanted, this.#maxBytes)
    if (this.#waiting.length > 0 || this.#usedBytes + bytes > this.#maxBytes) {
      await new Promise<void>((go) => this.#waiting.push({ bytes, go }))
    } else this.#usedBytes += bytes
    try {
      return await work()
    } finally {
      this.#usedBytes -= bytes
      this.#letIn()
    }
  }

  #letIn(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#usedBytes + next.bytes > this.#maxBytes) return
      this.#usedBytes += next.bytes
      this.#waiting.shift()
      next.go()
    }
  }
}
