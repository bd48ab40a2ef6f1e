import { checkInteger, checkKey, checkTags, checkTime, maxInteger } from '../check.ts'
import { arrayText } from '../database/types.ts'
import { checkId } from '../ids.ts'
import { FencepostError } from '../errors.ts'
import { encodeJson } from '../json.ts'
import { checkOnLocked, checkQueue, parsePayload, type OnLocked, type Operation } from '../operation.ts'

/** What can be said about a job when it is submitted, chained or made a child. */
export interface SubmitOptions {
  /** Smaller is sooner. */
  priority?: number
  /** Not before this time. */
  runAfter?: Date | string
  /** Not before this many milliseconds from now, by Postgres's clock. */
  delayMs?: number
  maxAttempts?: number
  /** How long each attempt may take, from its claim on; instead of the operation's. */
  timeoutMs?: number
  /** Fails unless it has started by this time. */
  startBy?: Date | string
  /** Fails unless it has started within this many milliseconds from now, by Postgres's clock. */
  startWithinMs?: number
  queue?: string
  /** Only for operations that have `keys: 'caller'`, and make no such key of their own. */
  lockKey?: string
  slotKey?: string
  dedupKey?: string
  /** What becomes of it while another job holds its lock: refused, or pending until its turn comes. */
  onLocked?: OnLocked
  pipelineId?: string
  /** Words to find it by: at most 20, each of at most 100 characters. */
  tags?: readonly string[]
  /** Who asks for it; kept in the job's first event. */
  by?: string
}

/** A job that has passed every check and waits to be written. */
export interface Submission {
  operation: string
  queue: string
  payload: string
  priority: number
  runAfter: string | undefined
  delayMs: number
  maxAttempts: number
  timeoutMs: number | undefined
  startBy: string | undefined
  startWithinMs: number | undefined
  lockKey: string | undefined
  slotKey: string | undefined
  dedupKey: string | undefined
  onLocked: OnLocked | 'skip'
  pipelineId: string | undefined
  /** As Postgres writes an array. */
  tags: string | undefined
  by: string | undefined
}

const minInteger = -2_147_483_648

/** Checks everything about a job before anything is written. */
export async function prepareSubmission(
  operation: Operation,
  payload: unknown,
  options: SubmitOptions,
  maxPayloadBytes: number,
): Promise<Submission> {
  const parsed = await parsePayload(operation, payload)
  if (options.runAfter !== undefined && options.delayMs !== undefined) {
    throw new FencepostError('options_invalid', 'Both runAfter and delayMs are given; give one of them.')
  }
  if (options.startBy !== undefined && options.startWithinMs !== undefined) {
    throw new FencepostError('options_invalid', 'Both startBy and startWithinMs are given; give one of them.')
  }
  const timeoutMs = options.timeoutMs ?? operation.timeoutMs
  return {
    operation: operation.name,
    queue: options.queue === undefined ? operation.queue : checkQueue(options.queue),
    // What was given, not what the schema made of it: the schema reads it again when the job runs.
    payload: encodeJson(payload, `The payload for operation ${operation.name}`, maxPayloadBytes),
    priority: checkInteger(options.priority ?? 0, 'priority', minInteger),
    runAfter: options.runAfter === undefined ? undefined : checkTime(options.runAfter, 'runAfter'),
    delayMs: checkInteger(options.delayMs ?? 0, 'delayMs', 0, maxInteger),
    maxAttempts: checkInteger(options.maxAttempts ?? operation.maxAttempts, 'maxAttempts', 1),
    timeoutMs: timeoutMs === undefined ? undefined : checkInteger(timeoutMs, 'timeoutMs', 1),
    startBy: options.startBy === undefined ? undefined : checkTime(options.startBy, 'startBy'),
    startWithinMs:
      options.startWithinMs === undefined ? undefined : checkInteger(options.startWithinMs, 'startWithinMs', 1),
    lockKey: checkKey(chooseKey(operation, 'lock', operation.lock?.(parsed), options.lockKey), 'lock key'),
    slotKey: checkKey(chooseKey(operation, 'slot', operation.slot?.(parsed), options.slotKey), 'slot key'),
    dedupKey: checkKey(chooseKey(operation, 'dedup', operation.dedup?.(parsed), options.dedupKey), 'dedup key'),
    onLocked: checkOnLocked(options.onLocked ?? operation.onLocked, operation.name),
    pipelineId: options.pipelineId === undefined ? undefined : checkId(options.pipelineId, 'pipeline id'),
    tags: arrayText(checkTags(options.tags)),
    by: checkKey(options.by, 'by'),
  }
}

// An operation's lock is what makes it safe, so a submission cannot replace it; nor take a lock that is somebody else's,
// unless the operation says that it may.
function chooseKey(
  { name, keys }: Operation,
  kind: 'lock' | 'slot' | 'dedup',
  own: string | undefined,
  given: string | undefined,
): string | undefined {
  if (given === undefined || given === own) return own
  if (own === undefined && keys === 'caller') return given
  const why =
    own === undefined
      ? `Operation ${name} takes no ${kind} key from submissions (it is not declared with keys: 'caller')`
      : `Operation ${name} makes its ${kind} key itself`
  throw new FencepostError('key_refused', `${why}. Leave the key out.`, { details: { operation: name, key: kind } })
}
