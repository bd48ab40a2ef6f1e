import { storableText } from '../check.ts'
import type { Context } from '../context.ts'
import { FencepostError, PermanentError, RetryLater } from '../errors.ts'
import { encodeJson } from '../json.ts'
import { Defer, type Child } from '../lifecycle/defer.ts'
import { prepareSubmission, type Submission } from '../lifecycle/submission.ts'
import { parsePayload, parseResult, unknownOperation, type Operation, type Run } from '../operation.ts'
import type { Attempt } from './attempt.ts'
import { errorDetails } from './error-details.ts'
import { leftOpen } from './open-transactions.ts'
import type { Outcome } from './settle.ts'
import type { CheckedStep } from './step.ts'

const noSteps: readonly CheckedStep[] = []

/** How long transactions have to end that a handler left open when it returned, unless somebody says otherwise. */
const defaultGraceMs = 1_000

/** Runs the handler and says what it came to. Writes nothing: reporting an outcome is another step, and may be late. */
export async function execute(context: Context, attempt: Attempt, graceMs = defaultGraceMs): Promise<Outcome> {
  const { claimed } = attempt
  const operation = context.operations.get(claimed.operation)
  if (operation === undefined) return failed(unknownOperation(claimed.operation), true)
  let payload: unknown
  try {
    payload = parsePayload(operation, claimed.payload)
    if (payload instanceof Promise) payload = await payload
  } catch (error) {
    return failed(error, true) // what is stored will not change: trying again cannot help
  }
  try {
    const run = handlerOf(operation, claimed.part)
    const value = await run(runOf(attempt, payload))
    attempt.closeTransactions()
    if (attempt.hasOpenTransactions && !(await attempt.endTransactions(graceMs))) throw leftOpen(attempt)
    if (attempt.completed !== undefined) return attempt.completed
    // Nothing to wait for in most: one promise less for each of very many jobs.
    if (attempt.links.length === 0 && !(value instanceof Defer) && operation.result === undefined)
      return completed(context, attempt, value, [])
    return await outcomeOf(context, attempt, value)
  } catch (error) {
    attempt.closeTransactions()
    if (attempt.hasOpenTransactions) await attempt.endTransactions(graceMs).catch(() => {}) // it failed in any case
    if (attempt.completed === undefined) return outcomeOfError(error)
    const { jobId, attemptId, operation: name } = claimed
    context.logger.warn({ err: error, job_id: jobId, attempt_id: attemptId, operation: name }, 'error_after_completion')
    return attempt.completed
  }
}

// `signal` is made when the handler asks for it.
function runOf(attempt: Attempt, payload: unknown): Run<unknown> {
  return {
    payload,
    attempt,
    get signal() {
      return attempt.signal
    },
  }
}

/** What an attempt came to whose handler returned this value. */
export async function outcomeOf(context: Context, attempt: Attempt, value: unknown): Promise<Outcome> {
  const { maxPayloadBytes } = context.limits
  const prepare = (wanted: readonly Child[]): Promise<Submission[]> =>
    Promise.all(wanted.map((one) => prepareSubmission(one.operation, one.payload, one.options, maxPayloadBytes)))
  const operation = context.operations.get(attempt.claimed.operation) // whoever has leases of his own may not have it
  if (!(value instanceof Defer)) {
    return completed(context, attempt, await parseResult(operation, value), await prepare(attempt.links))
  }
  if (attempt.links.length > 0) {
    throw new PermanentError(
      `Job ${attempt.jobId} both defers to children and chains a job; chain from a job that completes.`,
    )
  }
  if (value.then_ !== undefined && !Object.hasOwn(operation?.parts ?? {}, value.then_)) {
    const { operation: name } = attempt.claimed
    throw new PermanentError(`Operation ${name} has no part ${value.then_}, which it is to go on with.`)
  }
  // Without one, the job's result is not this handler's to give.
  const result = value.result === undefined ? undefined : await parseResult(operation, value.result)
  return {
    kind: 'deferred',
    children: await prepareChildren(value, prepare),
    failWhen: value.failWhen,
    then: value.then_,
    result: encodeJson(result, `The result of job ${attempt.jobId}`, maxPayloadBytes),
  }
}

// What a child says for itself goes before what the deferral says, and that before what the operation says.
async function prepareChildren(
  { children, onLocked }: Defer,
  prepare: (wanted: readonly Child[]) => Promise<Submission[]>,
): Promise<Submission[]> {
  if (onLocked === undefined) return prepare(children)
  if (onLocked !== 'skip') return prepare(children.map((one) => ({ ...one, options: { onLocked, ...one.options } })))
  const prepared = await prepare(children)
  return prepared.map((one, nth) => (children[nth]?.options.onLocked === undefined ? { ...one, onLocked } : one))
}

function handlerOf(operation: Operation, part: string | undefined): Operation['run'] {
  if (part === undefined) return operation.run
  const handler = Object.hasOwn(operation.parts, part) ? operation.parts[part] : undefined
  if (handler !== undefined) return handler
  throw new PermanentError(`Operation ${operation.name} has no part ${part}.`)
}

function completed(context: Context, attempt: Attempt, value: unknown, chain: readonly Submission[]): Outcome {
  const result =
    value === undefined
      ? 'null'
      : encodeJson(value, `The result of job ${attempt.jobId}`, context.limits.maxPayloadBytes)
  return { kind: 'completed', result, steps: noSteps, chain }
}

/** What an attempt came to whose handler threw this. */
export function outcomeOfError(error: unknown): Outcome {
  if (error instanceof RetryLater) {
    return { kind: 'retry_later', reason: storableText(error.message), delaySeconds: error.delaySeconds }
  }
  return failed(error, isPermanent(error))
}

// A result that does not fit would not fit the next time either.
function isPermanent(error: unknown): boolean {
  return error instanceof PermanentError || (error instanceof FencepostError && error.code === 'result_invalid')
}

// The error's class is its code, unless it is one of ours and has a code.
function failed(error: unknown, permanent: boolean): Extract<Outcome, { kind: 'failed' }> {
  const message = error instanceof Error ? error.message : String(error)
  const errorCode = error instanceof FencepostError ? error.code : classOf(error)
  return {
    kind: 'failed',
    error: storableText(message || errorCode),
    errorCode: storableText(errorCode, 200),
    permanent,
    steps: [],
    details: errorDetails(error),
  }
}

// A class that extends Error and sets no name of its own is still called by its class.
function classOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Error'
  return error.name === 'Error' ? error.constructor.name : error.name
}
