import { storableText } from '../check.ts'
import type { Context } from '../context.ts'
import { FencepostError, PermanentError, RetryLater } from '../errors.ts'
import { encodeJson } from '../json.ts'
import { Defer, failAt, type Child } from '../lifecycle/defer.ts'
import { prepareSubmission, type Submission } from '../lifecycle/submission.ts'
import { parsePayload, type Run } from '../operation.ts'
import type { Attempt } from './attempt.ts'
import type { Outcome } from './settle.ts'

/** Runs the handler and says what it came to. Writes nothing: reporting an outcome is another step, and may be late. */
export async function execute(context: Context, attempt: Attempt): Promise<Outcome> {
  const { claimed } = attempt
  const operation = context.operations.get(claimed.operation)
  if (operation === undefined) return failed(unknownOperation(claimed.operation), true)
  let payload: unknown
  try {
    payload = await parsePayload(operation, claimed.payload)
  } catch (error) {
    return failed(error, true) // what is stored will not change: trying again cannot help
  }
  try {
    return await outcomeOf(context, attempt, await operation.run(runOf(attempt, payload)))
  } catch (error) {
    return outcomeOfError(error)
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
  if (!(value instanceof Defer)) {
    const result = encodeJson(value, `The result of job ${attempt.jobId}`, maxPayloadBytes)
    return { kind: 'completed', result, steps: [], chain: await prepare(attempt.links) }
  }
  if (attempt.links.length > 0) {
    throw new PermanentError(
      `Job ${attempt.jobId} both defers to children and chains a job; chain from a job that completes.`,
    )
  }
  return {
    kind: 'deferred',
    children: await prepare(value.children),
    failAt: failAt(value.failWhen, value.children.length),
    result: encodeJson(value.result, `The result of job ${attempt.jobId}`, maxPayloadBytes),
  }
}

/** What an attempt came to whose handler threw this. */
export function outcomeOfError(error: unknown): Outcome {
  if (error instanceof RetryLater) {
    return { kind: 'retry_later', reason: storableText(error.message), delaySeconds: error.delaySeconds }
  }
  return failed(error, error instanceof PermanentError)
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
  }
}

// A class that extends Error and sets no name of its own is still called by its class.
function classOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Error'
  return error.name === 'Error' ? error.constructor.name : error.name
}

export function unknownOperation(name: string): FencepostError {
  return new FencepostError(
    'operation_unknown',
    `${JSON.stringify(name)} is not an operation of this engine. Pass it in openEngine({ operations }).`,
    { details: { operation: name } },
  )
}
