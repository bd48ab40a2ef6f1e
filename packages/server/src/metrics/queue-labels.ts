const maxLabels = 100
const other = 'other'

/**
 * The queues that metrics are labelled with. Callers choose queues freely, and every label is kept for ever: so beside the
 * queues of the operations only the first hundred have a label of their own, and the rest share one.
 */
export class QueueLabels {
  readonly #labels: Set<string>
  readonly #max: number

  constructor(own: readonly string[]) {
    this.#labels = new Set(own)
    this.#max = this.#labels.size + maxLabels
  }

  labelOf(queue: string): string {
    if (this.#labels.has(queue)) return queue
    if (this.#labels.size >= this.#max) return other
    this.#labels.add(queue)
    return queue
  }
}
