import { constants } from 'node:os'

/** A signal for engine.work() that fires when this process is asked to stop. */
export interface StopOnSignals {
  readonly signal: AbortSignal
  /** Listens no more: the next SIGTERM or SIGINT does what it would have done without this. */
  dispose(): void
}

const signals = ['SIGTERM', 'SIGINT'] as const

/**
 * Takes SIGTERM and SIGINT for a request to stop. A second one ends the process at once, with 128 + its number: for a
 * person who will not wait. Limit: a handler that blocks the thread of this process blocks this too.
 */
export function stopOnSignals(): StopOnSignals {
  const controller = new AbortController()
  const onSignal = (signal: (typeof signals)[number]) => {
    // oxlint-disable-next-line unicorn/no-process-exit -- asked for twice
    if (controller.signal.aborted) process.exit(128 + constants.signals[signal])
    controller.abort(signal)
  }
  for (const signal of signals) process.on(signal, onSignal)
  return {
    signal: controller.signal,
    dispose: () => {
      for (const signal of signals) process.off(signal, onSignal)
    },
  }
}
