import type { Attempt } from './attempt/attempt.ts'
import { checkInteger } from './check.ts'
import { FencepostError } from './errors.ts'

/** The part of the Standard Schema interface that we call; zod, valibot, arktype and others implement it. */
export interface Schema<Input, Output> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

type SchemaResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: ReadonlyArray<SchemaIssue> }

interface SchemaIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** What a handler is given. */
export interface Run<Payload> {
  payload: Payload
  attempt: Attempt
  /** Fires when the attempt should stop: its fence is lost, its job cancelled, its time is over, or its worker is going away. */
  signal: AbortSignal
}

/** What defer() makes, as far as it matters here: a handler may return it instead of a result. */
interface Deferral {
  readonly children: readonly unknown[]
  readonly failWhen: unknown
}

export interface RetryPolicy {
  /** Delay before the second attempt; it doubles with every further one. */
  firstDelayMs: number
  maxDelayMs: number
}

/** What becomes of a job whose lock another holds: it is refused, or waits in line for it. */
export type OnLocked = 'refuse' | 'wait'

export interface OperationOptions<Input, Payload, Returned = unknown, Result = unknown> {
  /** Checks and types the payload: any Standard Schema validator. */
  payload: Schema<Input, Payload>
  /** Checks and types what the handler returns: any Standard Schema validator. What it makes of it is the job's result. */
  result?: Schema<Returned, Result>
  /** Workers claim by queue. Operations that have workers of their own want a queue of their own. */
  queue?: string
  /** The resource that only one job at a time may hold, from submission to its end. */
  lock?: (payload: Payload) => string | undefined
  /** The slot in which only one job at a time runs, and of which the last one claimed is current. */
  slot?: (payload: Payload) => string | undefined
  /** While a job with this key is pending or running, submitting another is a conflict. */
  dedup?: (payload: Payload) => string | undefined
  /** Who chooses lock, slot and dedup keys: the operation alone, or submissions too, where the operation has none. */
  keys?: 'operation' | 'caller'
  /** What becomes of a job while another holds its lock: refused, or pending until its turn comes. */
  onLocked?: OnLocked
  maxAttempts?: number
  /** How long an attempt may take, from its claim on, before its handler is stopped and its job fails. */
  timeoutMs?: number
  /** How long an attempt may be silent before it is taken for dead. */
  leaseMs?: number
  retry?: Partial<RetryPolicy>
  /** What becomes of a running job when its worker is told to stop: given back without spending the attempt, or failed. */
  onShutdown?: 'release' | 'fail'
  /** Where its handler runs: in the worker's own process, or in one apart, which may block, crash or be killed. */
  isolation?: 'none' | 'process'
  /** The most memory for the JavaScript heap of an isolated handler's process. */
  maxMemoryMb?: number
  run: (run: Run<Payload>) => Promise<NoInfer<Returned> | Deferral>
  /** Handlers that go on with a job after its children, by name: see `then` of defer(). */
  parts?: Readonly<Record<string, (run: Run<Payload>) => Promise<NoInfer<Returned> | Deferral>>>
}

/**
 * A named kind of job: how its payload looks, and the handler that runs it. Inside the engine payloads are unknown;
 * `Input` is what submitting it takes, `Result` what its jobs come to.
 */
export interface Operation<Input = unknown, Result = unknown> {
  readonly name: string
  readonly payload: Schema<unknown, unknown>
  readonly result: Schema<unknown, unknown> | undefined
  readonly queue: string
  readonly lock: ((payload: unknown) => string | undefined) | undefined
  readonly slot: ((payload: unknown) => string | undefined) | undefined
  readonly dedup: ((payload: unknown) => string | undefined) | undefined
  readonly keys: 'operation' | 'caller'
  readonly onLocked: OnLocked
  readonly maxAttempts: number
  readonly timeoutMs: number | undefined
  readonly leaseMs: number
  readonly retry: RetryPolicy
  readonly onShutdown: 'release' | 'fail'
  readonly isolation: 'none' | 'process'
  readonly maxMemoryMb: number | undefined
  readonly run: (run: Run<unknown>) => Promise<unknown>
  readonly parts: Readonly<Record<string, (run: Run<unknown>) => Promise<unknown>>>
  readonly '~input'?: Input
  readonly '~result'?: Result
}

export const operationDefaults = {
  queue: 'default',
  keys: 'operation',
  onLocked: 'refuse',
  maxAttempts: 3,
  leaseMs: 30_000,
  retry: { firstDelayMs: 1_000, maxDelayMs: 3_600_000 },
  onShutdown: 'release',
  isolation: 'none',
} as const

export const minLeaseMs = 100
const minMemoryMb = 32 // below, Node itself has no room to start
const namePattern = /^[a-z][a-z0-9_]{0,62}$/
const partPattern = /^[a-z][a-zA-Z0-9_]{0,62}$/
const queuePattern = /^[a-z][a-z0-9_.-]{0,62}$/

/** Declares an operation. */
export function operation<Input, Payload, Returned = unknown, Result = unknown>(
  name: string,
  options: OperationOptions<Input, Payload, Returned, Result>,
): Operation<Input, Result> {
  if (!namePattern.test(name)) {
    throw new FencepostError(
      'operation_invalid',
      `${JSON.stringify(name)} is not a name for an operation: lower-case letters, digits and _, at most 63.`,
    )
  }
  const queue = checkQueue(options.queue ?? operationDefaults.queue)
  // The one place where the payload's type is let go: parsePayload() has run before any of these is called.
  const { payload, result, lock, slot, dedup, run, parts = {} } = options as OperationOptions<unknown, unknown>
  return {
    name,
    payload,
    result,
    queue,
    lock,
    slot,
    dedup,
    keys: checkKeys(name, options.keys ?? operationDefaults.keys),
    onLocked: checkOnLocked(options.onLocked ?? operationDefaults.onLocked, name),
    maxAttempts: checkInteger(options.maxAttempts ?? operationDefaults.maxAttempts, `maxAttempts of ${name}`, 1),
    timeoutMs: options.timeoutMs === undefined ? undefined : checkInteger(options.timeoutMs, `timeoutMs of ${name}`, 1),
    leaseMs: checkInteger(options.leaseMs ?? operationDefaults.leaseMs, `leaseMs of ${name}`, minLeaseMs),
    retry: {
      firstDelayMs: checkInteger(
        options.retry?.firstDelayMs ?? operationDefaults.retry.firstDelayMs,
        `retry.firstDelayMs of ${name}`,
        0,
      ),
      maxDelayMs: checkInteger(
        options.retry?.maxDelayMs ?? operationDefaults.retry.maxDelayMs,
        `retry.maxDelayMs of ${name}`,
        0,
      ),
    },
    onShutdown: options.onShutdown ?? operationDefaults.onShutdown,
    ...checkIsolation(name, options),
    run,
    parts: checkParts(name, parts),
  }
}

function checkParts(name: string, parts: Operation['parts']): Operation['parts'] {
  const bad = Object.keys(parts).find((part) => !partPattern.test(part))
  if (bad === undefined) return { ...parts }
  const rule = 'letters, digits and _, at most 63'
  throw new FencepostError('operation_invalid', `${JSON.stringify(bad)} is not a name for a part of ${name}: ${rule}.`)
}

/** The names under which workers claim the jobs of an operation: its own, and one for each of its parts. */
export function claimNames({ name, parts }: Operation): string[] {
  return [name, ...Object.keys(parts).map((part) => `${name}/${part}`)]
}

function checkKeys(name: string, keys: Operation['keys']): Operation['keys'] {
  if (keys === 'operation' || keys === 'caller') return keys
  throw new FencepostError('operation_invalid', `keys of ${name} is ${String(keys)}; give 'operation' or 'caller'.`)
}

export function checkOnLocked(onLocked: OnLocked, name: string): OnLocked {
  if (onLocked === 'refuse' || onLocked === 'wait') return onLocked
  throw new FencepostError('options_invalid', `onLocked of ${name} is ${String(onLocked)}; give 'refuse' or 'wait'.`)
}

function checkIsolation(
  name: string,
  {
    isolation = operationDefaults.isolation,
    maxMemoryMb,
  }: Pick<OperationOptions<never, never>, 'isolation' | 'maxMemoryMb'>,
): Pick<Operation, 'isolation' | 'maxMemoryMb'> {
  if (!['none', 'process'].includes(isolation)) {
    throw new FencepostError('operation_invalid', `isolation of ${name} is ${isolation}; give 'none' or 'process'.`)
  }
  if (maxMemoryMb === undefined) return { isolation, maxMemoryMb }
  if (isolation === 'none') {
    throw new FencepostError('operation_invalid', `maxMemoryMb of ${name} needs isolation: 'process'.`)
  }
  return { isolation, maxMemoryMb: checkInteger(maxMemoryMb, `maxMemoryMb of ${name}`, minMemoryMb) }
}

/** A queue's name, checked. */
export function checkQueue(queue: string): string {
  if (queuePattern.test(queue)) return queue
  throw new FencepostError(
    'operation_invalid',
    `${JSON.stringify(queue)} is not a name for a queue: lower-case letters, digits, _ . and -, at most 63.`,
  )
}

/** The payload as the operation's schema reads it, or an error that says what is wrong and where; later if it must. */
export function parsePayload(op: Operation, payload: unknown): unknown {
  const result = op.payload['~standard'].validate(payload)
  return result instanceof Promise
    ? result.then((later) => valueOf(op, later, 'payload'))
    : valueOf(op, result, 'payload')
}

/** The result as the operation's schema reads it, where it has one; or an error likewise. */
export async function parseResult(op: Operation | undefined, result: unknown): Promise<unknown> {
  return op?.result === undefined ? result : valueOf(op, await op.result['~standard'].validate(result), 'result')
}

function valueOf(op: Operation, result: SchemaResult<unknown>, what: 'payload' | 'result'): unknown {
  if (result.issues === undefined) return result.value
  const issues = result.issues.map((issue) => ({ path: pathOf(issue), message: issue.message }))
  const first = issues[0]
  const where = first?.path ? ` at ${first.path}` : ''
  throw new FencepostError(
    `${what}_invalid`,
    `The ${what} ${what === 'payload' ? 'for' : 'of'} operation ${op.name} is not valid${where}: ${first?.message ?? 'no reason given'}` +
      `${issues.length > 1 ? ` (and ${issues.length - 1} more)` : ''}.`,
    { details: { operation: op.name, issues } },
  )
}

function pathOf(issue: SchemaIssue): string {
  return (issue.path ?? []).map((segment) => String(typeof segment === 'object' ? segment.key : segment)).join('.')
}

/** The operation of that name, which the engine must have been opened with. */
export function findOperation(operations: ReadonlyMap<string, Operation>, wanted: Operation | string): Operation {
  const name = typeof wanted === 'string' ? wanted : wanted.name
  const found = operations.get(name)
  if (found === undefined) throw unknownOperation(String(name))
  return found
}

export function unknownOperation(name: string): FencepostError {
  return new FencepostError(
    'operation_unknown',
    `${JSON.stringify(name)} is not an operation of this engine. Pass it in openEngine({ operations }).`,
    { details: { operation: name } },
  )
}
