import { setImmediate } from 'node:timers/promises'

// Metadata of 100,000 snapshots takes seconds to read or write. Work of such a length is a generator that yields often: it
// is run at once where nobody waits, or in slices with turns for others between them.

/** Work in steps. */
export type Steps<T> = Generator<undefined, T, undefined>

/** How long others wait for their turn. */
const sliceMs = 10

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let until = performance.now() + sliceMs; ;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (performance.now() < until) continue
    await setImmediate()
    until = performance.now() + sliceMs
  }
}
