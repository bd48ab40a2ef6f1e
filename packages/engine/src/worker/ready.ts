/** What came together. */
interface Batch<Item> {
  items: readonly Item[]
  /** The first that has not been taken. */
  next: number
  since: number
}

/** Items that wait for their turn, in the order in which they came, with the time since when. */
export class Ready<Item> {
  readonly #batches: Batch<Item>[] = []
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Since when the first has been waiting; Infinity when there is none. */
  get oldest(): number {
    return this.#batches[0]?.since ?? Infinity
  }

  /** `since` is not before that of the items added earlier. */
  add(items: readonly Item[], since: number): void {
    if (items.length === 0) return
    this.#batches.push({ items, next: 0, since })
    this.#length += items.length
  }

  /** Takes the first. */
  shift(): Item | undefined {
    const [first] = this.#batches
    if (first === undefined) return undefined
    const item = first.items[first.next]
    first.next += 1
    this.#length -= 1
    if (first.next === first.items.length) this.#batches.shift()
    return item
  }

  /** Takes those that have been waiting since before this time. */
  takeOlderThan(time: number): Item[] {
    const taken: Item[] = []
    while (this.oldest < time) taken.push(this.shift() as Item)
    return taken
  }

  takeAll(): Item[] {
    return this.takeOlderThan(Infinity)
  }
}
