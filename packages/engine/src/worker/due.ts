import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'

/** Not knowing costs less than waiting: nothing is claimed meanwhile. */
const answerMs = 5_000
/** How many jobs to look at, of whichever queue, for one that this worker could run. */
const maxLookedAt = 1_000

/**
 * How long until the next job is due that such a worker could run, as far as that is easily seen.
 *
 * Also what has just become due: it may have done so since the claim. What has been due for longer and was not claimed is
 * in somebody's way, and can wait for the ordinary look; so can what is behind very many jobs of others.
 */
export async function msUntilDue(
  db: Db,
  queues: readonly string[],
  operations: readonly string[],
): Promise<number | undefined> {
  const { t } = db
  const [next] = await db.query<{ ms: number }>(
    'next_due',
    sql`select (extract(epoch from run_after - ${t.now}) * 1000)::double precision as ms
          from (select queue, operation, run_after from ${t.liveJobs}
                 where status = 'pending' and attempt_id is null and run_after > ${t.now} - interval '1 second'
                 order by run_after limit ${maxLookedAt}::integer) soonest
         where queue = any(${queues}::text[]) and operation = any(${operations}::text[])
         order by run_after limit 1`,
    answerMs,
  )
  return next?.ms
}
