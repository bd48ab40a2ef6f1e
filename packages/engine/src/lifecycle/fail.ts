import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { dashedId } from '../ids.ts'
import type { SettledRow } from './complete.ts'
import { endedByFence, finishEnded, freeEnded, rememberStart } from './finish.ts'
import type { Fence } from './outcome.ts'

export interface Failure extends Fence {
  error: string
  errorCode: string
}

/** fail: running → failed, for good. Fails every attempt that still holds its fence; those are returned. */
export async function fail(db: Db, failures: readonly Failure[]): Promise<SettledRow[]> {
  if (failures.length === 0) return []
  const { t } = db
  const given = JSON.stringify(
    Object.fromEntries(
      failures.map(({ attemptId, error, errorCode }) => [dashedId(attemptId), { error, code: errorCode }]),
    ),
  )
  const error = sql`${given}::jsonb -> attempt_id::text ->> 'error'`
  const errorCode = sql`${given}::jsonb -> attempt_id::text ->> 'code'`
  return db.query<SettledRow>(
    'fail',
    sql`
    with ${endedByFence(db, failures)},
    ${finishEnded(db, { status: sql`'failed'`, error, errorCode })},
    ${freeEnded(db)},
    ${rememberStart(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, level, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'error', 'job.failed', ${error},
             jsonb_build_object('error_code', ${errorCode}, 'attempt', attempts)
        from ended
    )
    select job_id, attempt_id, parent_job_id, pipeline_id from ended`,
  )
}
