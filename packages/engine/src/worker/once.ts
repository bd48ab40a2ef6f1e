import type { Attempt } from '../attempt/attempt.ts'
import { childConflict } from '../attempt/fence.ts'
import { renewAttempts } from '../attempt/renewals.ts'
import type { Outcome } from '../attempt/settle.ts'
import type { Context } from '../context.ts'
import type { Engine } from '../engine.ts'
import type { Operation } from '../operation.ts'
import { atMost } from './at-most.ts'
import { Handlers } from './handlers.ts'
import { judged, keepsItsJob, takenOutcome } from './judged.ts'
import { logOutlivedGrace, logSettled, logStarted } from './log.ts'
import { checkWorkOptions, type CheckedWorkOptions, type WorkOptions } from './options.ts'
import { register } from './registry.ts'
import { Renewer } from './renewer.ts'
import { Settler, type Reported } from './settler.ts'
import { Timeouts } from './timeouts.ts'
import type { WakeUp } from './wake-up.ts'
import { wakeUpOf } from './work.ts'
import { takeWorkerId } from './worker-id.ts'

const patienceMs = 1_000

/** How one job is claimed and run. */
export type WorkOnceOptions = Pick<
  WorkOptions,
  'operations' | 'queues' | 'signal' | 'graceMs' | 'processEnds' | 'wakeUp'
>

/** What came of claiming one job and running it. */
export type WorkedOnce =
  /** No job was due; or the signal had fired before one was claimed. */
  | { outcome: 'nothing' | 'stopped' }
  | {
      outcome:
        | 'completed'
        | 'deferred'
        | 'failed'
        /** It failed and will be tried again. */
        | 'retried'
        | 'retry_later'
        /** Given back, because the signal fired or the handler was stopped. */
        | 'released'
        /** The job was cancelled, or is another attempt's by now. */
        | 'fence_lost'
        /** Postgres could not be reached to say what it came to: the lease will pass. */
        | 'not_written'
      jobId: string
    }

/** The exit code of a process that ran one job: 0 completed, 1 failed or stopped, 3 nothing to do. */
export function exitCodeOf({ outcome }: WorkedOnce): 0 | 1 | 3 {
  switch (outcome) {
    case 'completed':
    case 'deferred': // this process has done its part, and the job goes on by itself
      return 0
    case 'nothing':
      return 3
    case 'stopped':
    case 'failed':
    case 'retried':
    case 'retry_later':
    case 'released':
    case 'fence_lost':
    case 'not_written':
      return 1
  }
}

/** Claims one job of any of the queues, runs it with its lease renewed, and settles it. */
export async function workOnce(context: Context, engine: Engine, options: WorkOnceOptions): Promise<WorkedOnce> {
  const checked = checkWorkOptions({ ...options, concurrency: 1 }, context.operations)
  const handlers = new Handlers(context, checked)
  const { workerId, giveBack } = takeWorkerId(engine)
  try {
    await engine.schedules.submitDue(checked.operations.map(({ name }) => name))
    const found = await claimOne(engine, checked, workerId)
    if (found === undefined) return { outcome: checked.signal?.aborted ? 'stopped' : 'nothing' }
    const unregister = await register(context, {
      workerId,
      operations: checked.operations.map(({ name }) => name),
      queues: checked.queues,
      concurrency: 1,
    })
    const worked = await runClaimed(context, engine, checked, handlers, found)
    await atMost(patienceMs, unregister()) // Postgres may not answer
    return worked
  } finally {
    giveBack()
    await handlers.close()
  }
}

interface Found {
  attempt: Attempt
  claimedAt: number
}

async function claimOne(engine: Engine, options: CheckedWorkOptions, workerId: string): Promise<Found | undefined> {
  const operations = options.operations.map(({ name }) => name)
  for (const queue of options.queues) {
    if (options.signal?.aborted) return undefined
    const claimedAt = performance.now()
    const [attempt] = await engine.claim({ queue, operations, limit: 1, workerId })
    if (attempt !== undefined) return { attempt, claimedAt }
  }
  return undefined
}

async function runClaimed(
  context: Context,
  engine: Engine,
  options: CheckedWorkOptions,
  handlers: Handlers,
  { attempt, claimedAt }: Found,
): Promise<WorkedOnce> {
  const { signal, graceMs } = options
  const operation = options.operations.find(({ name }) => name === attempt.claimed.operation)
  const renewing = context.database.lane() // the handler may be using all connections of the pool
  const renewer = new Renewer((attempts) => renewAttempts(context, renewing, attempts), context.logger)
  const settler = new Settler((settlements) => engine.settleAll(settlements), 1, context.logger)
  renewer.hold(attempt, claimedAt)
  const wakeUp = wakeUpOf(context, options)
  void listenForCancel(engine, wakeUp, attempt)
  const timing = onceLate(attempt, claimedAt, graceMs, operation)
  const stopped = onceStopped(signal, () => attempt.abort('shutdown'), graceMs)
  const late = stopped.late.then(() => settler.giveUp())
  // The signal fired while the job was being claimed, or the claim was answered so late that its lease may have passed.
  const unwanted = attempt.abortReason
  const ran: Promise<Outcome> =
    unwanted === undefined
      ? executed(context, handlers, attempt)
      : Promise.resolve({ kind: 'released', reason: unwanted })
  const first = await Promise.race([ran, late, timing.late])
  const inTime = first ?? (await outlived(context, handlers, attempt, options, ran))
  const outcome = inTime === undefined ? takenOutcome(attempt, operation) : judged(attempt, inTime, operation)
  const overran = outcome.kind === 'timed_out' && outcome.handlerRuns
  if (overran) await endOverrun(context, handlers, attempt)
  const reported = await settler.report(attempt, outcome)
  logSettled(context.logger, attempt, outcome, reported)
  if (overran) {
    if (keepsItsJob(attempt, operation, options.processEnds)) await ran
    await attempt.letGo().catch(() => {}) // nobody renews them any more
  }
  timing.dispose()
  stopped.dispose()
  renewer.drop(attempt)
  renewer.stop()
  await atMost(patienceMs, Promise.all([wakeUp?.stop(), renewing.close()]))
  return { outcome: await worked(engine, attempt, outcome, reported), jobId: attempt.jobId }
}

function executed(context: Context, handlers: Handlers, attempt: Attempt): Promise<Outcome> {
  logStarted(context.logger, attempt)
  return context.telemetry.running(attempt.claimed, () => handlers.execute(attempt))
}

/** What a handler came to that outlived its grace; undefined when its job is to be taken from it. */
async function outlived(
  { logger, operations }: Context,
  handlers: Handlers,
  attempt: Attempt,
  { processEnds }: CheckedWorkOptions,
  ran: Promise<Outcome>,
): Promise<Outcome | undefined> {
  logOutlivedGrace(logger, attempt)
  if (keepsItsJob(attempt, operations.get(attempt.claimed.operation), processEnds)) return ran
  await handlers.end(attempt) // before the job is anybody else's
  return undefined
}

async function endOverrun({ logger }: Context, handlers: Handlers, attempt: Attempt): Promise<void> {
  logOutlivedGrace(logger, attempt)
  await handlers.end(attempt) // its transactions hold the job's row
}

/** `late` resolves when the time and the grace of the attempt are over; never for one that is killed then. */
function onceLate(attempt: Attempt, claimedAt: number, graceMs: number, operation: Operation | undefined) {
  let timeouts: Timeouts | undefined
  const late = new Promise<Outcome>((resolve) => {
    const isKilled = operation?.isolation === 'process'
    timeouts = new Timeouts(graceMs, () => {
      if (!isKilled) resolve(attempt.completed ?? { kind: 'timed_out', handlerRuns: true })
    })
    timeouts.watch(attempt, claimedAt)
  })
  return { late, dispose: () => timeouts?.drop(attempt) }
}

// To no queue, and for nothing but cancels: without it they would be noticed at the next renewal.
async function listenForCancel(engine: Engine, wakeUp: WakeUp | undefined, attempt: Attempt): Promise<void> {
  await wakeUp?.start([], 1, {
    onWake: () => {},
    onJob: async () => 'declined',
    onCancel: ({ attemptId }) => {
      if (attemptId === attempt.attemptId) attempt.abort('cancelled')
    },
  })
  // It may have been announced before anybody listened. If this fails, the next renewal finds it.
  const job = await engine.get(attempt.jobId).catch(() => undefined)
  if (job?.status === 'cancelled') attempt.abort('cancelled')
}

/** Calls `stop` when the signal fires; `late` resolves when the grace has passed after that. */
function onceStopped(signal: AbortSignal | undefined, stop: () => void, graceMs: number) {
  let timer: NodeJS.Timeout | undefined
  let onAbort = () => {}
  const late = new Promise<void>((resolve) => {
    onAbort = () => {
      stop()
      timer = setTimeout(resolve, graceMs)
    }
  })
  if (signal?.aborted) onAbort()
  else signal?.addEventListener('abort', onAbort, { once: true })
  const dispose = () => {
    signal?.removeEventListener('abort', onAbort)
    clearTimeout(timer)
  }
  return { late, dispose }
}

async function worked(
  engine: Engine,
  { jobId, claimed }: Attempt,
  outcome: Outcome,
  reported: Reported,
): Promise<Exclude<WorkedOnce['outcome'], 'nothing' | 'stopped'>> {
  if (!reported.settled) return reported.why
  switch (outcome.kind) {
    case 'timed_out':
      return 'failed'
    case 'failed':
      return !outcome.permanent && claimed.attempts < claimed.maxAttempts ? 'retried' : 'failed'
    case 'deferred': {
      // Children that could not be submitted are found out only when they are written.
      const job = await engine.get(jobId)
      if (job?.errorCode !== childConflict) return outcome.children.length === 0 ? 'completed' : 'deferred'
      return job.status === 'failed' ? 'failed' : 'retried'
    }
    case 'completed':
    case 'retry_later':
    case 'released':
      return outcome.kind
  }
}
