import type { AbortReason, Attempt } from '../../attempt/attempt.ts'
import type { Outcome } from '../../attempt/settle.ts'
import { storableText } from '../../check.ts'
import type { Context } from '../../context.ts'
import { FencepostError } from '../../errors.ts'
import type { Operation } from '../../operation.ts'
import { logOutlivedGrace } from '../log.ts'
import type { HandlerProcess } from './handler-process.ts'
import type { HandlerSettings } from './messages.ts'
import { HandlerPool } from './pool.ts'

/** How long a job waits that could not be run because no handler process could be started. */
const notStartedSeconds = 5
/** Of a lease that cannot be renewed, at most this much is given to a handler that was told to stop. */
const lastShare = 0.1

/**
 * Runs handlers in processes of their own. The supervisor, which is this process, goes on renewing and settling whatever
 * they do: a handler that blocks its thread keeps its lease, one whose process ends is settled at once, and one that does
 * not stop when told is killed after the grace. One that forgot a rejection is killed at once. Only then does its attempt let go of its lock.
 */
export class IsolatedHandlers {
  readonly #pool: HandlerPool
  readonly #operations: ReadonlyMap<string, Operation>
  readonly #logger: Context['logger']
  readonly #graceMs: number
  readonly #running = new Map<Attempt, HandlerProcess>()

  constructor(
    context: Context,
    operations: readonly Operation[],
    { concurrency, graceMs }: { concurrency: number; graceMs: number },
  ) {
    this.#operations = new Map(operations.map((operation) => [operation.name, operation]))
    this.#logger = context.logger
    this.#graceMs = graceMs
    this.#pool = new HandlerPool(settingsOf(context, operations, graceMs), concurrency, context.logger)
  }

  /** Starts the first handlerProcess, to see that the operations can be loaded before anything is claimed. */
  async start(): Promise<void> {
    const [first] = this.#operations.values()
    this.#pool.giveBack(await this.#pool.take(first?.maxMemoryMb))
  }

  /** Runs the attempt's handler. Never throws. */
  async execute(attempt: Attempt): Promise<Outcome> {
    let handlerProcess: HandlerProcess
    try {
      handlerProcess = await this.#pool.take(this.#operations.get(attempt.claimed.operation)?.maxMemoryMb)
    } catch (error) {
      return this.#notStarted(attempt, error)
    }
    if (attempt.abortReason !== undefined) {
      this.#pool.giveBack(handlerProcess)
      return { kind: 'released', reason: attempt.abortReason }
    }
    this.#running.set(attempt, handlerProcess)
    const unwatch = this.#passOnAbort(attempt, handlerProcess)
    const outcome = await handlerProcess.run(attempt.claimed, () => attempt.abort('fence_lost'))
    unwatch()
    if (handlerProcess.isGone) attempt.handlerKilled()
    this.#running.delete(attempt)
    this.#pool.giveBack(handlerProcess)
    return outcome
  }

  /** Ends the attempt's handler by force; resolves when it is gone. */
  async end(attempt: Attempt): Promise<void> {
    const handlerProcess = this.#running.get(attempt)
    if (handlerProcess === undefined) return
    attempt.handlerKilled()
    await handlerProcess.kill()
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }

  #passOnAbort(attempt: Attempt, handlerProcess: HandlerProcess): () => void {
    let timer: NodeJS.Timeout | undefined
    const onAbort = () => {
      const reason = attempt.abortReason ?? 'shutdown'
      handlerProcess.abort(attempt.attemptId, reason)
      // At shutdown the worker keeps the time, and ends what has outlived it by end().
      if (reason === 'shutdown') return
      timer = setTimeout(() => void this.#killLate(attempt, handlerProcess), this.#graceOf(attempt, reason))
    }
    const { signal } = attempt
    signal.addEventListener('abort', onAbort, { once: true })
    return () => {
      signal.removeEventListener('abort', onAbort)
      clearTimeout(timer)
    }
  }

  // When Postgres cannot be reached, the handler must be gone before another worker may have its job.
  #graceOf({ claimed }: Attempt, reason: AbortReason): number {
    return reason === 'database_unreachable' ? Math.min(this.#graceMs, claimed.leaseMs * lastShare) : this.#graceMs
  }

  async #killLate(attempt: Attempt, handlerProcess: HandlerProcess): Promise<void> {
    logOutlivedGrace(this.#logger, attempt)
    await handlerProcess.kill()
  }

  // The handler has not begun, so no attempt is spent; but the next try should not come at once.
  #notStarted({ claimed }: Attempt, error: unknown): Outcome {
    const { jobId, attemptId, operation } = claimed
    this.#logger.error({ err: error, job_id: jobId, attempt_id: attemptId, operation }, 'handler_process_not_started')
    const reason = storableText(error instanceof Error ? error.message : String(error))
    return { kind: 'retry_later', reason, delaySeconds: notStartedSeconds }
  }
}

function settingsOf(context: Context, operations: readonly Operation[], graceMs: number): HandlerSettings {
  const { operationsModule, maxConnections, preparedStatements, connectTimeoutMs } = context.handlerProcess
  const { answerTimeoutMs, idleTransactionTimeoutMs, lockTimeoutMs } = context.handlerProcess
  const { maxPayloadBytes, staleMs, retentionMs } = context.limits
  const required = operations.map(({ name }) => name)
  if (operationsModule === undefined) {
    throw new FencepostError(
      'operations_module_missing',
      `Operations with isolation: 'process' (${required.join(', ')}) run in processes of their own, which must be able ` +
        'to import them. Pass openEngine({ operationsModule }): the path of a module that exports them as operations.',
      { details: { operations: required } },
    )
  }
  return {
    url: context.url,
    schema: context.database.t.schema,
    maxConnections,
    preparedStatements,
    connectTimeoutMs,
    answerTimeoutMs,
    graceMs,
    idleTransactionTimeoutMs,
    lockTimeoutMs,
    limits: { maxPayloadBytes, staleMs, retentionMs }, // and no more: not everything can be sent
    operationsModule,
    required,
  }
}
