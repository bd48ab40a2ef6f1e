import type { Context } from '../context.ts'
import type { Db } from '../database/database.ts'
import { drawPlaces, insertChained } from '../lifecycle/chain.ts'
import type { Claimed } from '../lifecycle/claim.ts'
import { complete, type SettledRow } from '../lifecycle/complete.ts'
import { AncestorsKey, ChildConflict, deferAttempt } from '../lifecycle/defer.ts'
import { fail } from '../lifecycle/fail.ts'
import type { WrittenRow } from '../lifecycle/outcome.ts'
import { retry } from '../lifecycle/retry.ts'
import { childConflict } from './fence.ts'
import type { Failed, Outcome } from './settle.ts'
import { settlingOf } from './settling.ts'
import { recordSteps } from './step.ts'

/*
 * Outcomes that take several statements, each in a transaction of its own: a deferral with its children, steps that are
 * stored together with the end, and chained jobs with a lock or a dedup key, which may find their keys taken.
 */

/** Completes one attempt; false when its row was not found. */
export async function completeAlone(
  context: Context,
  claimed: Claimed,
  outcome: Extract<Outcome, { kind: 'completed' }>,
): Promise<boolean> {
  const { rows, chained } = await context.database.transaction('complete', (db) => completeIn(db, claimed, outcome))
  if (rows.length > 0) context.wake.submitted(outcome.chain, chained)
  return rows.length > 0
}

/** Completes one attempt, with its steps and the jobs it chained, inside whatever transaction `db` is. */
export async function completeIn(
  db: Db,
  claimed: Claimed,
  outcome: Extract<Outcome, { kind: 'completed' }>,
): Promise<{ rows: SettledRow[]; chained: (string | undefined)[] }> {
  const { steps, chain } = outcome
  const settling = settlingOf(claimed)
  const places = await drawPlaces(db, chain.length)
  const rows = await complete(db, [{ ...settling, result: outcome.result, chains: chain.length > 0 }])
  if (rows[0] === undefined) return { rows, chained: [] }
  await recordSteps(db, settling, steps, 'proven')
  const pipelineId = rows[0].pipeline_id ?? claimed.jobId
  const chained = chain.length > 0 ? await insertChained(db, { ...settling, pipelineId }, chain, places) : []
  return { rows, chained }
}

/** Retries or fails one attempt with its last steps; false when its row was not found. */
export async function failAlone(
  context: Context,
  claimed: Claimed,
  outcome: Failed,
  delayMs: number | undefined,
): Promise<boolean> {
  const failure = {
    ...settlingOf(claimed),
    error: outcome.error,
    errorCode: outcome.errorCode,
    details: outcome.details,
  }
  const write = (db: Db): Promise<WrittenRow[]> =>
    delayMs === undefined ? fail(db, [failure]) : retry(db, [{ ...failure, delayMs }])
  return context.database.transaction('fail', async (db) => {
    const rows = await write(db)
    if (rows.length > 0) await recordSteps(db, claimed, outcome.steps, 'proven')
    return rows.length > 0
  })
}

/** Defers one attempt to its children: whether its row was found, or the failure that it ends in instead. */
export async function deferAlone(
  context: Context,
  claimed: Claimed,
  outcome: Extract<Outcome, { kind: 'deferred' }>,
): Promise<boolean | Failed> {
  try {
    const settling = settlingOf(claimed)
    const deferred = await context.database.transaction('defer', (db) => deferAttempt(db, settling, outcome))
    if (deferred === undefined) return false
    context.wake.submitted(outcome.children, deferred.jobIds)
    if (deferred.continuedIn !== undefined) context.wake.queues([deferred.continuedIn])
    return true
  } catch (error) {
    if (!(error instanceof ChildConflict || error instanceof AncestorsKey)) throw error
    return {
      kind: 'failed',
      error: `A child could not be submitted: ${describeConflict(error)}`,
      errorCode: childConflict,
      permanent: error instanceof AncestorsKey,
      steps: [],
    }
  }
}

function describeConflict(error: ChildConflict | AncestorsKey): string {
  if (error instanceof AncestorsKey) {
    return `it wants the ${error.kind} ${error.key}, which a job that waits for it keeps, so that it could never run`
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
