import type { AbortReason } from '../../attempt/attempt.ts'
import type { Outcome } from '../../attempt/settle.ts'
import type { Claimed } from '../../lifecycle/claim.ts'
import type { EngineLimits } from '../../options.ts'

/*
 * What supervisor and handler process say to each other, over the IPC channel of the child:
 *
 *   supervisor → handler process        handler process → supervisor
 *   open      once, at the start        ready, or unusable
 *   run       one attempt at a time     outcome; rejected, and then it is killed
 *   abort     while it runs             fence_lost, when a write of the handler was refused
 *   end       when it is not needed     (it exits)
 *
 * The supervisor owns the lease and settles. The handler process writes what its handler writes meanwhile (events,
 * steps, transactions) over a connection of its own, under the same fence.
 *
 * The user's code shares the channel and may send messages of its own: each of ours is marked, all others are ignored.
 */

/** What a handler process needs to do the same as its supervisor would. */
export interface HandlerSettings {
  url: string
  schema: string
  maxConnections: number
  preparedStatements: boolean
  connectTimeoutMs: number
  answerTimeoutMs: number
  graceMs: number
  idleTransactionTimeoutMs: number
  lockTimeoutMs: number
  limits: EngineLimits
  /** The address of the module that exports the operations. */
  operationsModule: string
  /** The operations that it must export. */
  required: readonly string[]
}

export type ToHandler =
  | { kind: 'open'; settings: HandlerSettings }
  | { kind: 'run'; claimed: Claimed }
  | { kind: 'abort'; attemptId: string; reason: AbortReason }
  | { kind: 'end' }

export type ToSupervisor =
  | { kind: 'ready' }
  | { kind: 'unusable'; why: string }
  | { kind: 'outcome'; attemptId: string; outcome: Outcome }
  | { kind: 'rejected'; attemptId: string; outcome: Outcome }
  | { kind: 'fence_lost'; attemptId: string }
  | { kind: 'log'; level: 'info' | 'warn' | 'error'; fields: Record<string, unknown>; message: string }

const mark = '@fencepost/engine'

export function marked(message: ToHandler | ToSupervisor): object {
  return { [mark]: message }
}

/** The message, if it is one of ours. */
export function unmarked<Message extends ToHandler | ToSupervisor>(value: unknown): Message | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as Record<string, unknown>)[mark] as Message | undefined
}
