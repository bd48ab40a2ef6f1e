import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, sql } from '../database/sql.ts'
import { byAttempt, endedByFence, fenceValues, ifKeys, keysOf, type FenceValues, type Settling } from './finish.ts'
import type { WrittenRow } from './outcome.ts'
import { letGoOfEnded, requeueEnded } from './requeue.ts'

export interface Postponement extends Settling {
  reason: string
  delaySeconds: number
}

/**
 * retry later: running → pending because the handler asked for it; the attempt is given back. One statement for a whole
 * batch; the attempts that still held their fence are returned.
 */
export async function retryLater(db: Db, postponements: readonly Postponement[]): Promise<WrittenRow[]> {
  if (postponements.length === 0) return []
  const given = byAttempt(postponements, ({ reason, delaySeconds }) => ({ reason, seconds: delaySeconds }))
  const statement = postponing(db.t, { ...fenceValues(postponements), given }, keysOf(postponements))
  return db.query<WrittenRow>('retry_later', statement)
}

const postponing = form<Relations, FenceValues & { given: string }>((t, { jobIds, attemptIds, given }, shape) => {
  const of = sql`${given}::jsonb -> attempt_id::text`
  const runAfter = sql`${t.now} + (${of} ->> 'seconds')::double precision * interval '1 second'`
  return sql`
    with ${endedByFence({ t }, { jobIds, attemptIds })},
    ${requeueEnded({ t }, { runAfter, attempts: sql`attempts - 1` })},
    ${ifKeys(shape, letGoOfEnded({ t }))}
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'job.retry_later', ${of} ->> 'reason',
             jsonb_build_object('reason', ${of} ->> 'reason', 'delay_seconds', ${of} -> 'seconds')
        from ended
    )
    select attempt_id from ended`
})
