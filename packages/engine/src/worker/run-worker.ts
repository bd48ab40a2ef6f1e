import type { Engine } from '../engine.ts'
import { atMost } from './at-most.ts'
import { exitCodeOf } from './once.ts'
import type { WorkOptions } from './options.ts'
import { stopOnSignals } from './stop-on-signals.ts'

const patienceMs = 5_000

/** A worker that is all its process does. */
export interface RunWorkerOptions extends Omit<WorkOptions, 'signal' | 'processEnds'> {
  /** Run one job and end, instead of working until a signal comes. */
  once?: boolean
}

/**
 * Works until SIGTERM or SIGINT, or runs one job, then closes the engine. Resolves with the exit code; the caller ends
 * the process with it at once: a handler that outlived its grace may still run, and its job is somebody else's now.
 */
export async function runWorker(engine: Engine, options: RunWorkerOptions = {}): Promise<number> {
  const { once = false, ...rest } = options
  const stop = stopOnSignals()
  try {
    const work: WorkOptions = { ...rest, signal: stop.signal, processEnds: true }
    if (once) return exitCodeOf(await engine.workOnce(work))
    await engine.work(work)
    return 0
  } finally {
    // The process ends now, and its connections with it: a Postgres that does not answer must not hold it up.
    await atMost(patienceMs, engine.close())
    stop.dispose()
  }
}
