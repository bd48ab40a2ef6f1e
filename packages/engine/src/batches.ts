/** So that one write is under way while the items of the next come in: the process and Postgres work side by side. */
const maxWriting = 2

/**
 * Has items written together. The first goes at once; what arrives while writes are under way goes with the next, so
 * batches grow with the load, and an idle process adds no delay.
 */
export class Batches<Item> {
  readonly #write: (some: readonly Item[]) => Promise<void>
  readonly #maxBatch: number
  readonly #waiting: Item[] = []
  #scheduled = false
  #writing = 0

  /** `write` must not reject: whoever waits for an item is told by it. */
  constructor(write: (some: readonly Item[]) => Promise<void>, maxBatch: number) {
    this.#write = write
    this.#maxBatch = maxBatch
  }

  add(item: Item): void {
    this.#waiting.push(item)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || this.#writing >= maxWriting) return
    this.#scheduled = true
    // One turn of the event loop, so that what comes together is written together.
    setImmediate(() => {
      this.#scheduled = false
      void this.#writeSome()
      this.#schedule()
    })
  }

  async #writeSome(): Promise<void> {
    this.#writing += 1
    await this.#write(this.#waiting.splice(0, this.#maxBatch))
    this.#writing -= 1
    this.#schedule()
  }
}
