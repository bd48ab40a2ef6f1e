import type { Engine } from '../engine.ts'
import { atMost } from './at-most.ts'
import { exitCodeOf } from './once.ts'
import type { WorkOptions } from './options.ts'
import { stopOnSignals } from './stop-on-signals.ts'

const patienceMs = 5_000

/** A worker that is all its process does. */
export interface RunWorkerOptions extends Omit<WorkOptions, 'signal'> {
  /** Run one job and end, instead of working until a signal comes. */
  once?: boolean
}

/**
 * Works until SIGTERM or SIGINT, or runs one job, then closes the engine. Resolves with the exit code; the caller ends
 * the process with it, because a handler that outlived its grace may still hold it open.
 */
export async function runWorker(engine: Engine, options: RunWorkerOptions = {}): Promise<number> {
  const { once = false, ...rest } = options
  const stop = stopOnSignals()
  try {
    if (once) return exitCodeOf(await engine.workOnce({ ...rest, signal: stop.signal }))
    await engine.work({ ...rest, signal: stop.signal })
    return 0
  } finally {
    // The process ends now, and its connections with it: a Postgres that does not answer must not hold it up.
    await atMost(patienceMs, engine.close())
    stop.dispose()
  }
}
