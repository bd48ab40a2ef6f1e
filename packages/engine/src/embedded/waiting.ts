import { setTimeout as pause } from 'node:timers/promises'

const pauseMs = 20

/**
 * Work that now and then has to wait for another process. It yields where it would look again, so that the same
 * protocol can run while the program goes on, and once more, synchronously, while the program is already ending.
 */
export type Waiting<T> = Generator<void, T, void>

/** Runs the work between other things. */
export async function patiently<T>(work: Waiting<T>): Promise<T> {
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    await pause(pauseMs)
  }
}

/** Runs the work to its end before anything else: for exit handlers, after which no timer fires any more. */
export function blocking<T>(work: Waiting<T>): T {
  const never = new Int32Array(new SharedArrayBuffer(4))
  for (;;) {
    const step = work.next()
    if (step.done) return step.value
    Atomics.wait(never, 0, 0, pauseMs)
  }
}
