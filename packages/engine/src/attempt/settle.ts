import type { Context } from '../context.ts'
import type { Db } from '../database/database.ts'
import { AncestorsSlot, ChildConflict, deferAttempt } from '../lifecycle/defer.ts'
import { drawPlaces, insertChained } from '../lifecycle/chain.ts'
import type { Claimed } from '../lifecycle/claim.ts'
import { closeParents } from '../lifecycle/close.ts'
import { complete, completeMany, type Completion, type SettledRow } from '../lifecycle/complete.ts'
import { fail } from '../lifecycle/fail.ts'
import type { Fence, Settled } from '../lifecycle/outcome.ts'
import { release } from '../lifecycle/release.ts'
import { backoffMs, retry } from '../lifecycle/retry.ts'
import { retryLater } from '../lifecycle/retry-later.ts'
import type { Submission } from '../lifecycle/submission.ts'
import { alreadySettled, childConflict, recordRejection, type Verb } from './fence.ts'
import { recordSteps, type CheckedStep } from './step.ts'

/** What an attempt came to: computed first, from the handler alone; written second, as often as it takes. */
export type Outcome =
  | {
      kind: 'completed'
      result: string
      steps: readonly CheckedStep[]
      chain: readonly Submission[]
      /** By attempt.complete(): there is nothing left to write. */
      written?: true
    }
  | { kind: 'failed'; error: string; errorCode: string; permanent: boolean; steps: readonly CheckedStep[] }
  | { kind: 'retry_later'; reason: string; delaySeconds: number }
  | { kind: 'released'; reason: string }
  | { kind: 'deferred'; children: readonly Submission[]; failAt: number; result: string }

export interface Settlement {
  claimed: Claimed
  outcome: Outcome
}

const settled: Settled = { settled: true }
const fenceLost: Settled = { settled: false, why: 'fence_lost' }

/** Writes the outcomes of any number of attempts; plain completions, and releases, are one statement. In order. */
export async function settleAll(context: Context, settlements: readonly Settlement[]): Promise<Settled[]> {
  const { database } = context
  const completing: Claimed[] = []
  const completions: Completion[] = []
  const releasing: Claimed[] = []
  const lost = new Set<string>()
  for (const { claimed, outcome } of settlements) {
    if (outcome.kind === 'completed' && outcome.written) continue // by attempt.complete()
    if (outcome.kind === 'completed' && outcome.chain.length === 0 && outcome.steps.length === 0) {
      completing.push(claimed)
      completions.push(completionOf(claimed, outcome))
    } else if (outcome.kind === 'released' && outcome.reason === 'shutdown') {
      releasing.push(claimed)
    } else if (!(await settle(context, claimed, outcome)).settled) {
      lost.add(claimed.attemptId)
    }
  }
  const completed = await completeMany(database, completions)
  const released = new Set((await release(database, releasing, 'shutdown')).map((row) => row.attempt_id))
  // With one of them missing, all are asked about: which it was, the count does not say.
  const uncertain = completed === completions.length ? [] : completing
  const unreleased = releasing.filter(({ attemptId }) => !released.has(attemptId))
  for (const attemptId of await reject(context, 'complete', uncertain)) lost.add(attemptId)
  await closeParentsOf(
    context,
    completing.flatMap(({ parentJobId }) => parentJobId ?? []),
  )
  for (const attemptId of await reject(context, 'release', unreleased)) lost.add(attemptId)
  context.wake.jobs(releasing)
  return settlements.map(({ claimed }) => (lost.has(claimed.attemptId) ? fenceLost : settled))
}

function completionOf(claimed: Claimed, { result }: { result: string }): Completion {
  const { jobId, attemptId, lockKey, slotKey } = claimed
  return { jobId, attemptId, result, hasKeys: lockKey !== undefined || slotKey !== undefined }
}

/** Writes one outcome under the fence. Repeating it, after an error, is safe and gives the same answer. */
export async function settle(context: Context, claimed: Claimed, outcome: Outcome): Promise<Settled> {
  const { database } = context
  const fence: Fence = { jobId: claimed.jobId, attemptId: claimed.attemptId }
  switch (outcome.kind) {
    case 'completed':
      if (outcome.written) return settled
      return finish(context, 'complete', claimed, await completeOne(context, claimed, outcome))
    case 'failed':
      return settleFailure(context, claimed, outcome)
    case 'retry_later':
      return finish(context, 'retry_later', claimed, await retryLater(database, [{ ...fence, ...outcome }]))
    case 'released': {
      const rows = await release(database, [fence], outcome.reason)
      if (rows.length > 0) context.wake.jobs([claimed])
      return finish(context, 'release', claimed, rows)
    }
    case 'deferred':
      return settleDeferral(context, claimed, outcome)
  }
}

async function completeOne(
  context: Context,
  claimed: Claimed,
  outcome: Extract<Outcome, { kind: 'completed' }>,
): Promise<SettledRow[]> {
  const { steps, chain } = outcome
  if (chain.length === 0 && steps.length === 0) return complete(context.database, [completionOf(claimed, outcome)])
  const { rows, chained } = await context.database.transaction('complete', (db) => completeIn(db, claimed, outcome))
  if (rows.length > 0) context.wake.submitted(chain, chained)
  return rows
}

/** Completes one attempt, with its steps and the jobs it chained, inside whatever transaction `db` is. */
export async function completeIn(
  db: Db,
  claimed: Claimed,
  outcome: Extract<Outcome, { kind: 'completed' }>,
): Promise<{ rows: SettledRow[]; chained: (string | undefined)[] }> {
  const { steps, chain } = outcome
  const fence: Fence = { jobId: claimed.jobId, attemptId: claimed.attemptId }
  const places = await drawPlaces(db, chain.length)
  const rows = await complete(db, [{ ...completionOf(claimed, outcome), chains: chain.length > 0 }])
  if (rows[0] === undefined) return { rows, chained: [] }
  await recordSteps(db, fence, steps, 'proven')
  const pipelineId = rows[0].pipeline_id ?? fence.jobId
  const chained = chain.length > 0 ? await insertChained(db, { ...fence, pipelineId }, chain, places) : []
  return { rows, chained }
}

async function settleFailure(
  context: Context,
  claimed: Claimed,
  { error, errorCode, permanent, steps }: Extract<Outcome, { kind: 'failed' }>,
): Promise<Settled> {
  const fence: Fence = { jobId: claimed.jobId, attemptId: claimed.attemptId }
  const again = !permanent && claimed.attempts < claimed.maxAttempts
  const policy = context.operations.get(claimed.operation)?.retry ?? { firstDelayMs: 1000, maxDelayMs: 3_600_000 }
  const delayMs = backoffMs(policy, claimed.attempts)
  const write = (db: Db) =>
    again ? retry(db, [{ ...fence, error, errorCode, delayMs }]) : fail(db, [{ ...fence, error, errorCode }])
  const withSteps = (db: Db) => inSteps(db, fence, steps, write)
  const { database } = context
  const rows = steps.length === 0 ? await write(database) : await database.transaction('fail', withSteps)
  return finish(context, again ? 'retry' : 'fail', claimed, rows)
}

async function inSteps(
  db: Db,
  fence: Fence,
  steps: readonly CheckedStep[],
  write: (db: Db) => Promise<SettledRow[]>,
): Promise<SettledRow[]> {
  const settled = await write(db)
  if (settled.length > 0) await recordSteps(db, fence, steps, 'proven')
  return settled
}

async function settleDeferral(
  context: Context,
  claimed: Claimed,
  outcome: Extract<Outcome, { kind: 'deferred' }>,
): Promise<Settled> {
  const fence: Fence = { jobId: claimed.jobId, attemptId: claimed.attemptId }
  if (outcome.children.length === 0) {
    return settle(context, claimed, { kind: 'completed', result: outcome.result, steps: [], chain: [] })
  }
  try {
    const jobIds = await context.database.transaction('defer', (db) => deferAttempt(db, fence, outcome))
    if (jobIds === undefined) return await finish(context, 'defer', claimed, [])
    context.wake.submitted(outcome.children, jobIds)
    return { settled: true }
  } catch (error) {
    if (!(error instanceof ChildConflict || error instanceof AncestorsSlot)) throw error
    return settleFailure(context, claimed, {
      kind: 'failed',
      error: `A child could not be submitted: ${describeConflict(error)}`,
      errorCode: childConflict,
      permanent: error instanceof AncestorsSlot,
      steps: [],
    })
  }
}

/** The answer to one settlement, and what follows from it. */
async function finish(context: Context, verb: Verb, claimed: Claimed, rows: readonly SettledRow[]): Promise<Settled> {
  if (rows.length === 0) {
    const lost = await reject(context, verb, [claimed])
    return lost.size > 0 ? fenceLost : settled
  }
  await afterwards(context, rows)
  return settled
}

/** Traces writes that found no row, and lets go of what their attempts still hold; the attempts that are lost. */
export async function reject(
  context: Pick<Context, 'logger' | 'telemetry'> & { readonly database: Db },
  verb: Verb,
  attempts: readonly Claimed[],
): Promise<Set<string>> {
  if (attempts.length === 0) return new Set()
  const { database, logger } = context
  const settled = await alreadySettled(database, verb, attempts)
  const stale = attempts.filter(({ attemptId }) => !settled.has(attemptId))
  if (stale.length > 0) await recordRejection(database, verb, stale)
  for (const claimed of stale) {
    const { jobId, attemptId, operation } = claimed
    logger.warn({ job_id: jobId, attempt_id: attemptId, operation, verb }, 'writeback_stale_attempt')
    context.telemetry.staleWriteback(operation, verb)
  }
  return new Set(stale.map(({ attemptId }) => attemptId))
}

/** An ended child may have been its parent's last. */
export async function afterwards(context: Context, rows: readonly { parent_job_id: string | null }[]): Promise<void> {
  await closeParentsOf(
    context,
    rows.map((row) => row.parent_job_id).filter((id) => id !== null),
  )
}

// The sweep does the same, so an error here loses nothing.
async function closeParentsOf(context: Context, parents: readonly string[]): Promise<void> {
  if (parents.length === 0) return
  try {
    await closeParents(context.database, parents)
  } catch (error) {
    context.logger.warn({ err: error, parents }, 'parent_not_closed')
  }
}

function describeConflict(error: ChildConflict | AncestorsSlot): string {
  if (error instanceof AncestorsSlot) {
    return `it wants the slot ${error.slotKey}, which a job that waits for it occupies, so that it could never run`
  }
  const { conflict } = error
  switch (conflict.why) {
    case 'locked':
      return `the lock ${conflict.lockKey} is held by job ${conflict.holder.jobId}`
    case 'duplicate':
      return `the dedup key ${conflict.dedupKey} is taken by job ${conflict.holder.jobId}`
    case 'drained':
      return 'new work is refused'
  }
}
