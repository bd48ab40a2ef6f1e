import type { Attempt } from '@fencepost/engine'
import type { ActionProgress } from '@fencepost/iceberg'
import type { ActionName } from './action-options.ts'

/** An action that has no bytes to rewrite still counts for something. */
const leastBytes = 1_048_576
const writeEveryMs = 500

/** How far all actions of a job have come, by the bytes that were planned for each. Written a few times a second. */
export class JobProgress {
  readonly #attempt: Attempt
  readonly #weights = new Map<ActionName, number>()
  readonly #shares = new Map<ActionName, number>()
  #writtenAt = Number.NEGATIVE_INFINITY
  #writing: Promise<unknown> = Promise.resolve()

  constructor(attempt: Attempt) {
    this.#attempt = attempt
  }

  planned(action: ActionName, bytes: number): void {
    this.#weights.set(action, Math.max(bytes, leastBytes))
  }

  /** Takes in what an action reports. Of a phase that knows no bytes, files or groups count. */
  moved(action: ActionName, { bytes, files, groups }: ActionProgress): void {
    const { done, total } = bytes ?? files ?? groups ?? { done: 0, total: 0 }
    if (total > 0) this.#set(action, Math.min(1, done / total), false)
  }

  async ended(action: ActionName): Promise<void> {
    this.#set(action, 1, true)
    await this.#writing
  }

  #set(action: ActionName, share: number, now: boolean): void {
    this.#shares.set(action, Math.max(share, this.#shares.get(action) ?? 0))
    if (!now && performance.now() - this.#writtenAt < writeEveryMs) return
    this.#writtenAt = performance.now()
    const { current, total } = this.#sums()
    // A failure here is found by whatever the action writes next.
    this.#writing = this.#writing.then(() => this.#attempt.progress(current, total)).catch(() => {})
  }

  #sums(): { current: number; total: number } {
    let [current, total] = [0, 0]
    for (const [action, weight] of this.#weights) {
      total += weight
      current += Math.floor(weight * (this.#shares.get(action) ?? 0))
    }
    return { current, total }
  }
}
