import type { DatabaseState } from '@fencepost/engine'

/*
 * Which event ids are settled.
 *
 * Event ids are drawn before their transaction commits, so an event may appear after one with a larger id. A reader that
 * only asks for ids past the largest it has seen would miss it. What can be relied on is Postgres's snapshot: `xmax` is
 * the first transaction that had not begun, `xmin` the first that had not ended. An id is drawn by a transaction that
 * has already got its number, because the row of its job, or of the event, was locked or written before. So once `xmin`
 * has passed what `xmax` was when some id was the last one drawn, all ids up to that one are there or never will be.
 *
 * A reader asks for ids past the floor, the last settled id, and leaves out those that it has seen above it.
 * `job.fence_rejected` alone is written without a row being locked first, so its transaction gets its number an instant
 * after its id; a floor is therefore taken only from what was read `settleMs` ago.
 */

interface Mark {
  at: number
  xmax: bigint
  lastId: bigint
  ts: string
}

export interface Floor {
  id: bigint
  ts: string | undefined
}

export class Horizon {
  readonly #settleMs: number
  readonly #markEveryMs: number
  /** Every id up to this one has been seen by whoever read since. */
  floor: Floor = { id: 0n, ts: undefined }
  #marks: Mark[] = []
  #previous: DatabaseState | undefined

  constructor({ settleMs = 5_000, markEveryMs = 1_000 } = {}) {
    this.#settleMs = settleMs
    this.#markEveryMs = markEveryMs
  }

  /** Takes in what a read saw. The floor may rise: to what this very read has covered, never further. */
  saw(snapshot: DatabaseState, nowMs = performance.now()): void {
    const settled = this.#marks.findLastIndex((mark) => mark.xmax <= snapshot.xmin && nowMs - mark.at >= this.#settleMs)
    const mark = this.#marks[settled]
    if (mark !== undefined) {
      this.floor = { id: mark.lastId, ts: mark.ts }
      this.#marks = this.#marks.slice(settled + 1)
    }
    // The last id of the read before: its statement read it before this statement's snapshot was taken.
    const { lastId, ts } = this.#previous ?? { lastId: undefined, ts: undefined }
    const latest = this.#marks.at(-1)
    if (lastId !== undefined && ts !== undefined && nowMs - (latest?.at ?? -Infinity) >= this.#markEveryMs) {
      this.#marks.push({ at: nowMs, xmax: snapshot.xmax, lastId, ts })
    }
    this.#previous = snapshot
  }

  /** The floor for a reader who does not wait longer than this for a transaction to end. */
  floorWithin(maxMs: number, nowMs = performance.now()): Floor {
    const mark = this.#marks.findLast(({ at }) => nowMs - at >= maxMs)
    return mark === undefined ? this.floor : { id: mark.lastId, ts: mark.ts }
  }
}
