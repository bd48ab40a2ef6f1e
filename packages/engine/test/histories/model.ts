import type { Verb } from '../../src/attempt/fence.ts'
import type { DrainLevel } from '../../src/lifecycle/drain.ts'
import type { Numbered } from './commands.ts'

/*
 * What Fencepost promises, as plain data. rules/ has a function for every command, that gives the answer it must get
 * and leaves the state it must leave; apply() in apply.ts makes them pure.
 *
 * Written from design.md, sections 4 and 9, not from the SQL: no two sessions, no statements, no row locks, only rules.
 */

export type Status = 'pending' | 'running' | 'completed' | 'failed' | 'cancelled'

export interface Job extends Numbered {
  status: Status
  /** When it may be claimed: a minute, and what was asked for first within the minute. */
  due: { minute: number; nth: number }
  attempts: number
  /** While running: the attempt that holds the fence. Once over: the one that wrote the end. */
  attempt: number | undefined
  worker: string | undefined
  claimedAt: number | undefined
  leaseUntil: number | undefined
  parent: number | undefined
  /** The job that a pipeline is named after. */
  pipeline: number | undefined
  family: { total: number; failAt: number } | undefined
  deferred: boolean
  progress: number | undefined
  result: unknown
  errorCode: string | undefined
  completedAt: number | undefined
  deleted: boolean
  steps: { attempt: number; step: string; success: boolean; result: unknown }[]
  /** The names of its events in order, each with the attempt it is about. */
  events: string[]
}

export interface Attempt {
  job: number
  /** Which of its job's attempts this is: the first, second, … */
  ordinal: number
  maxAttempts: number
  lease: number
  links: Numbered[]
  /** How it settled, if it did. A deferral that could not have its children settled as a failure as well. */
  settled: Verb[]
}

export interface Model {
  now: number
  /** Counts what has been asked for, one after another. */
  asked: number
  drain: DrainLevel
  jobs: Record<number, Job>
  /** Every job there ever was, in order. */
  accepted: number[]
  attempts: Attempt[]
  locks: Record<string, { job: number; attempt: number | undefined; until: number | undefined }>
  /** The current job of each slot, and the attempt that may still be at work in it although its job was taken away. */
  slots: Record<string, { job: number; held: { attempt: number; until: number } | undefined }>
  /** Attempts that wrote rows of their own. */
  ledger: number[]
}

export const minutes = { stale: 30, retention: 2000, firstRetry: 5, maxRetry: 8 } as const

export const emptyModel: Model = {
  now: 0,
  asked: 0,
  drain: 'off',
  jobs: {},
  accepted: [],
  attempts: [],
  locks: {},
  slots: {},
  ledger: [],
}

export const isLive = (job: Job | undefined): boolean => job?.status === 'pending' || job?.status === 'running'
export const all = (m: Model): Job[] => Object.values(m.jobs)
const byNumber = (a: number, b: number) => a - b
export const numbers = (jobs: readonly Job[]) => jobs.map(({ job }) => job).sort(byNumber)

export function attemptOf(m: Model, attempt: number): Attempt {
  return m.attempts[attempt] as Attempt // steps name attempts that exist
}

/** The job that this attempt holds the fence of. */
export function heldBy(m: Model, attempt: number): Job | undefined {
  const job = m.jobs[attemptOf(m, attempt).job]
  return job?.status === 'running' && job.attempt === attempt ? job : undefined
}

export const childrenOf = (m: Model, parent: number) => all(m).filter((job) => job.parent === parent)

/** True when a job could be claimed: due, and nobody may still be at work on its lock or in its slot. */
export function claimable(m: Model, job: Job): boolean {
  if (job.status !== 'pending' || job.due.minute > m.now || m.drain === 'all') return false
  const lock = job.lock === undefined ? undefined : m.locks[job.lock]
  if (lock?.until !== undefined && lock.until > m.now) return false
  if (job.slot === undefined) return true
  const held = m.slots[job.slot]?.held
  if (held !== undefined && held.until > m.now) return false
  return !all(m).some((other) => other.status === 'running' && other.slot === job.slot)
}
