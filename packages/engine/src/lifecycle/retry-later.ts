import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { dashedId } from '../ids.ts'
import { endedByFence } from './finish.ts'
import type { Fence } from './outcome.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'
import type { SettledRow } from './complete.ts'

export interface Postponement extends Fence {
  reason: string
  delaySeconds: number
}

/** retry later: running → pending because the handler asked for it; the attempt is given back. */
export async function retryLater(db: Db, postponements: readonly Postponement[]): Promise<SettledRow[]> {
  if (postponements.length === 0) return []
  const { t } = db
  const given = JSON.stringify(
    Object.fromEntries(
      postponements.map(({ attemptId, reason, delaySeconds }) => [
        dashedId(attemptId),
        { reason, seconds: delaySeconds },
      ]),
    ),
  )
  const of = sql`${given}::jsonb -> attempt_id::text`
  const runAfter = sql`${t.now} + (${of} ->> 'seconds')::double precision * interval '1 second'`
  return db.query<SettledRow>(
    'retry_later',
    sql`
    with ${endedByFence(db, postponements)},
    ${requeueEnded(db, { runAfter, attempts: sql`attempts - 1` })},
    ${letGoOfEnded(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'job.retry_later', ${of} ->> 'reason',
             jsonb_build_object('reason', ${of} ->> 'reason', 'delay_seconds', ${of} -> 'seconds')
        from ended
    )
    select job_id, attempt_id, parent_job_id, pipeline_id from ended`,
  )
}
