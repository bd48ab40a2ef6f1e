/** So that one statement is under way while the items of the next come in: the process and Postgres work side by side. */
const maxUnderWay = 2

/**
 * Has items handled together, in one statement. The first goes at once; what arrives while statements are under way
 * goes with the next, so batches grow with the load, and an idle process adds no delay.
 */
export class Batches<Item> {
  readonly #handle: (some: readonly Item[]) => Promise<void>
  readonly #maxBatch: number
  readonly #waiting: Item[] = []
  #scheduled = false
  #underWay = 0

  /** `handle` must not reject: whoever waits for an item is told by it. */
  constructor(handle: (some: readonly Item[]) => Promise<void>, maxBatch: number) {
    this.#handle = handle
    this.#maxBatch = maxBatch
  }

  add(item: Item): void {
    this.#waiting.push(item)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || this.#underWay >= maxUnderWay) return
    this.#scheduled = true
    // One turn of the event loop, so that what comes together stays together.
    setImmediate(() => {
      this.#scheduled = false
      void this.#handleSome()
      this.#schedule()
    })
  }

  async #handleSome(): Promise<void> {
    this.#underWay += 1
    await this.#handle(this.#waiting.splice(0, this.#maxBatch))
    this.#underWay -= 1
    this.#schedule()
  }
}
