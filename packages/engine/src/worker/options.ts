import { checkInteger } from '../check.ts'
import { FencepostError } from '../errors.ts'
import { checkQueue, type Operation } from '../operation.ts'
import type { WakeUp } from './wake-up.ts'

/** How a worker runs. */
export interface WorkOptions {
  /** How many handlers run at once. */
  concurrency?: number
  /** Names of operations; all that the engine was opened with when left out. */
  operations?: readonly string[]
  /** The queues to claim from; those of its operations when left out. */
  queues?: readonly string[]
  /** Aborting it stops the worker: see stopping in docs/operations/shutdown.md. */
  signal?: AbortSignal
  /** How often to look for work that nobody announced; a little sooner each time, so that workers spread out. */
  pollMs?: number
  /** How often to sweep: expire leases, close parents, free locks. Of many workers, one does it for all. */
  sweepMs?: number
  /** How often to remove jobs that are older than the retention time. */
  retainMs?: number
  /** How long running handlers have, once their signal has fired, before their jobs are given back without them. */
  graceMs?: number
  /** The process ends as soon as this resolves: jobs with a lock or slot are given back while their handlers still run. */
  processEnds?: boolean
  /** How to hear of work: the engine's way when left out, over Postgres (`listen`), in a way of your own, or `none`. */
  wakeUp?: 'listen' | 'none' | WakeUp
  /** The most jobs to claim in one statement, and so to hold ahead of need. */
  maxBatch?: number
}

export interface CheckedWorkOptions {
  concurrency: number
  operations: readonly Operation[]
  queues: readonly string[]
  signal: AbortSignal | undefined
  pollMs: number
  sweepMs: number
  retainMs: number
  graceMs: number
  processEnds: boolean
  wakeUp: 'listen' | 'none' | WakeUp | undefined
  maxBatch: number
}

export const workDefaults = {
  concurrency: 10,
  pollMs: 10_000,
  sweepMs: 5_000,
  retainMs: 3_600_000,
  graceMs: 1_000,
  processEnds: false,
  maxBatch: 1_000,
} as const

/** Checks the options of a worker once, and fills in the defaults. */
export function checkWorkOptions(options: WorkOptions, known: ReadonlyMap<string, Operation>): CheckedWorkOptions {
  const operations = (options.operations ?? [...known.keys()]).map((name) => {
    const operation = known.get(name)
    if (operation !== undefined) return operation
    throw new FencepostError('operation_unknown', `${JSON.stringify(name)} is not an operation of this engine.`)
  })
  if (operations.length === 0) {
    throw new FencepostError('options_invalid', 'A worker needs operations: pass them in openEngine({ operations }).')
  }
  const queues = options.queues ?? operations.map(({ queue }) => queue)
  const number = (
    name: 'concurrency' | 'pollMs' | 'sweepMs' | 'retainMs' | 'graceMs' | 'maxBatch',
    min: number,
    max?: number,
  ) => checkInteger(options[name] ?? workDefaults[name], name, min, max)
  return {
    concurrency: number('concurrency', 1, 10_000),
    operations,
    queues: [...new Set(queues)].map(checkQueue),
    signal: options.signal,
    pollMs: number('pollMs', 10),
    sweepMs: number('sweepMs', 10),
    retainMs: number('retainMs', 10),
    graceMs: number('graceMs', 0),
    processEnds: options.processEnds ?? workDefaults.processEnds,
    wakeUp: options.wakeUp,
    maxBatch: number('maxBatch', 1, 10_000),
  }
}
