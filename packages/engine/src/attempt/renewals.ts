import type { Context } from '../context.ts'
import type { Db } from '../database/database.ts'
import { renew } from '../lifecycle/renew.ts'
import type { Attempt } from './attempt.ts'
import { alreadySettled, reject } from './fence.ts'

/** Renews the leases of all these attempts in one statement; fires the signals of those whose fence is lost: the answer. */
export async function renewAttempts(context: Context, db: Db, attempts: readonly Attempt[]): Promise<Attempt[]> {
  const sent = new Map(attempts.map((attempt) => [attempt, attempt.reports]))
  const held = attempts.map(({ claimed }) => claimed)
  const gone = new Set((await renew(db, held)).map(({ attemptId }) => attemptId))
  // One whose outcome is being reported meanwhile hears from its report whether the fence was lost.
  const silent = attempts.filter(
    (attempt) => gone.has(attempt.attemptId) && attempt.reports % 2 === 0 && attempt.reports === sent.get(attempt),
  )
  // A handler may have completed its job by itself. One in a process of its own may not have said so yet.
  const isolated = silent.filter(({ claimed }) => context.operations.get(claimed.operation)?.isolation === 'process')
  const completed = await alreadySettled(db, 'complete', isolated)
  const lost = silent.filter((attempt) => attempt.completed === undefined && !completed.has(attempt.attemptId))
  // A worker that is still winding down goes on renewing, to keep its lock; that is said once.
  const news = lost.filter(({ abortReason }) => abortReason === undefined)
  for (const attempt of news) attempt.abort('fence_lost')
  const stale = news.map(({ claimed }) => claimed)
  await reject({ ...context, database: db }, 'renew', stale)
  return lost
}
