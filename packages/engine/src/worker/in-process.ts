import { AsyncLocalStorage } from 'node:async_hooks'
import type { Attempt } from '../attempt/attempt.ts'
import { isLeftOpen } from '../attempt/open-transactions.ts'
import { execute, outcomeOfError } from '../attempt/run.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Context } from '../context.ts'
import { logOutlivedGrace, logRejection } from './log.ts'

/*
 * Running handlers in this very process, many at once. A promise that a handler forgot and that is rejected would end
 * the process, and with it every other job it runs; here it fails the attempt that it belongs to, and nothing else.
 *
 * The handler goes on after that, and may still be at work on what its job has locked. So its signal fires, its lease is
 * renewed, and the attempt is settled when the handler has ended, however long that takes.
 */

export interface HereOptions {
  /** How long a handler may go on after a rejection before that is logged, and its transactions after it has returned. */
  graceMs: number
  /** Called with what a rejection has made of the attempt, while its handler goes on. */
  onRejected?: (outcome: Outcome) => void
}

interface Running {
  context: Context
  attempt: Attempt
  options: HereOptions
  ended: boolean
}

const current = new AsyncLocalStorage<Running>()
let listeners = 0

/** Runs the attempt's handler; resolves when it has ended. A rejection that nobody handled is the outcome. */
export async function executeHere(context: Context, attempt: Attempt, options: HereOptions): Promise<Outcome> {
  const running: Running = { context, attempt, options, ended: false }
  const outcome = await current.run(running, execute, context, attempt, options.graceMs)
  running.ended = true
  return attempt.completed ?? attempt.rejected ?? outcome
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
  const running = current.getStore()
  if (running !== undefined) rejected(running, error)
  // Not a handler's: what Node would have done without us.
  else if (process.listenerCount('unhandledRejection') === 1) throw error
}

function rejected(running: Running, error: unknown): void {
  const { context, attempt, options } = running
  logRejection(context.logger, attempt, error, running.ended)
  if (running.ended || attempt.rejected !== undefined || isLeftOpen(error)) return
  const outcome = outcomeOfError(error)
  attempt.rejectedBy(outcome)
  options.onRejected?.(attempt.completed ?? outcome)
  const late = () => {
    if (!running.ended) logOutlivedGrace(context.logger, attempt)
  }
  setTimeout(late, options.graceMs).unref()
}
