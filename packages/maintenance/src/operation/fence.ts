import { FencepostError, type Attempt } from '@fencepost/engine'
import type { ActionRun } from '@fencepost/iceberg'
import type { OpenedCatalog } from '../catalogs/catalogs.ts'
import { identityOf } from '../catalogs/same-postgres.ts'

/** What keeps an attempt that is no longer the current one from changing a table. */
export type FencedRun = Required<Pick<ActionRun, 'guard' | 'beforeDelete' | 'summary'>>

/**
 * A catalog in the engine's own database commits in a transaction that holds the fence: the commit and the proof are one.
 * For any other catalog, and before each batch of deletions, the fence is looked at immediately before. Limit: what is
 * sent in the instant after that look is applied although the fence may be lost; the commit still asserts the table that
 * it was planned on.
 */
export async function fenceOf(attempt: Attempt, { postgres }: OpenedCatalog): Promise<FencedRun> {
  // Asked again for every attempt, because a restart of Postgres changes the answer.
  const theirs = await postgres()
  const own = theirs === undefined ? undefined : await attempt.transaction((client) => identityOf(client))
  const isSame = own !== undefined && own === theirs
  const check = async () => {
    if (!(await attempt.checkFence()).held) throw fenceLost(attempt)
  }
  return {
    guard: async ({ transaction }) => {
      if (!isSame || transaction === undefined) return check()
      if (!(await attempt.holdFence(transaction)).held) throw fenceLost(attempt)
    },
    beforeDelete: check,
    summary: { 'fencepost.job-id': attempt.jobId, 'fencepost.attempt-id': attempt.attemptId },
  }
}

function fenceLost({ jobId, attemptId }: Attempt): FencepostError {
  return new FencepostError(
    'fence_lost',
    `Attempt ${attemptId} of job ${jobId} is no longer the current one; nothing was committed to the table.`,
    { details: { jobId, attemptId } },
  )
}
