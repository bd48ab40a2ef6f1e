import { AsyncLocalStorage } from 'node:async_hooks'
import type { Attempt } from '../attempt/attempt.ts'
import { execute, outcomeOfError } from '../attempt/run.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Context } from '../context.ts'

/*
 * Running handlers in this very process, many at once. A promise that a handler forgot and that is rejected would end
 * the process, and with it every other job it runs; here it fails the attempt that it belongs to, and nothing else.
 */

type Ended = (outcome: Outcome) => void

// With as few objects for each job as can be: there may be very many.
const current = new AsyncLocalStorage<Ended>()
let listeners = 0

/** Runs the attempt's handler; the outcome is its own, or that of a rejection nobody handled. */
export function executeHere(context: Context, attempt: Attempt): Promise<Outcome> {
  return new Promise((ended) => current.run(ended, executeInto, ended, context, attempt))
}

function executeInto(ended: Ended, context: Context, attempt: Attempt): void {
  void execute(context, attempt).then(ended) // never rejects
}

/** Watches for rejections while a worker runs; the answer ends it. */
export function watchRejections(): () => void {
  if (listeners === 0) process.on('unhandledRejection', onRejection)
  listeners += 1
  return () => {
    listeners -= 1
    if (listeners === 0) process.off('unhandledRejection', onRejection)
  }
}

function onRejection(error: unknown): void {
  const ended = current.getStore()
  if (ended !== undefined) ended(outcomeOfError(error))
  // Not a handler's: what Node would have done without us.
  else if (process.listenerCount('unhandledRejection') === 1) throw error
}
