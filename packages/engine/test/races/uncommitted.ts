import type { Db } from '../../src/database/database.ts'
import { claim, claimByIds, type Claimed } from '../../src/lifecycle/claim.ts'
import { complete, type SettledRow } from '../../src/lifecycle/complete.ts'
import { expireToFailed, expireToPending, type ExpiredRow } from '../../src/lifecycle/expire.ts'
import type { Fence, WrittenRow } from '../../src/lifecycle/outcome.ts'
import { recover, type Recovered } from '../../src/lifecycle/recover.ts'
import { release } from '../../src/lifecycle/release.ts'
import { renew, type Held } from '../../src/lifecycle/renew.ts'
import { prepareSubmission, type SubmitOptions } from '../../src/lifecycle/submission.ts'
import { insertSubmissions, type Submitted } from '../../src/lifecycle/submit.ts'
import { freeOrphanedLocks } from '../../src/lifecycle/sweep.ts'
import { work } from '../bed.ts'

/*
 * The transitions that are one statement, for bed.hold(): it runs them and leaves their transaction open, as another
 * process does between its statement and its commit. Those that are several statements are stopped by a Gate instead.
 */

const leases = { work: 30_000 }

export function claiming(limit = 1) {
  return (db: Db): Promise<Claimed[]> => claim(db, { queue: 'default', leases, limit, workerId: 'another' })
}

export function claimingJob(jobId: string) {
  return async (db: Db): Promise<Claimed | undefined> =>
    (await claimByIds(db, [jobId], { leases, workerId: 'another' }))[0]
}

export function completing(...fences: readonly Fence[]) {
  return (db: Db): Promise<SettledRow[]> =>
    complete(
      db,
      fences.map(({ jobId, attemptId }) => ({ jobId, attemptId, result: '{"by":"another"}', hasKeys: true })),
    )
}

export function releasing(fence: Fence) {
  const { jobId, attemptId } = fence
  return (db: Db): Promise<WrittenRow[]> => release(db, [{ jobId, attemptId, hasKeys: true, reason: 'going away' }])
}

export function renewing(...held: readonly Held[]) {
  return (db: Db): Promise<Fence[]> => renew(db, held)
}

export function expiring() {
  return async (db: Db): Promise<ExpiredRow[]> => [
    ...(await expireToPending(db, 10)),
    ...(await expireToFailed(db, 10)),
  ]
}

export function freeing() {
  return (db: Db): Promise<string[]> => freeOrphanedLocks(db)
}

export function recovering(jobId: string, staleMs: number) {
  return (db: Db): Promise<Recovered> => recover(db, jobId, { staleMs, by: 'another' })
}

export function submitting(...wanted: readonly SubmitOptions[]) {
  return async (db: Db): Promise<Submitted[]> => {
    const prepared = await Promise.all(wanted.map((options) => prepareSubmission(work, {}, options, 1000)))
    return insertSubmissions(db, prepared, { from: 'submitter' })
  }
}
