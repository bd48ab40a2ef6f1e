import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, raw, sql } from '../database/sql.ts'
import { byAttempt, endedByFence, fenceValues, ifKeys, keysOf, type FenceValues, type Settling } from './finish.ts'
import type { WrittenRow } from './outcome.ts'
import { letGoOfEnded, requeueOnly } from './requeue.ts'

export interface Postponement extends Settling {
  reason: string
  delaySeconds: number
}

/*
 * retry later: running → pending because the handler asked for it; the attempt is given back.
 *
 * A job may ask for it for ever, so all of it is one event: it counts how often, and has the latest time, reason and
 * attempts. It gets a new id each time, so whoever follows the events sees it again. The start of such an attempt is no
 * event of its own.
 */

/** How many of the latest attempts the event names: a report of one of those that is repeated is known to have landed. */
export const namedAttempts = 10

/** One statement for a whole batch; the attempts that still held their fence are returned. */
export async function retryLater(db: Db, postponements: readonly Postponement[]): Promise<WrittenRow[]> {
  if (postponements.length === 0) return []
  const given = byAttempt(postponements, ({ reason, delaySeconds }) => ({ reason, seconds: delaySeconds }))
  const statement = postponing(db.t, { ...fenceValues(postponements), given }, keysOf(postponements))
  return db.query<WrittenRow>('retry_later', statement)
}

const postponing = form<Relations, FenceValues & { given: string }>((t, { jobIds, attemptIds, given }, shape) => {
  const of = sql`${given}::jsonb -> ended.attempt_id::text`
  const ofRow = sql`${given}::jsonb -> attempt_id::text`
  const runAfter = sql`${t.now} + (${ofRow} ->> 'seconds')::double precision * interval '1 second'`
  const id = sql`replace(ended.attempt_id::text, '-', '')`
  const fields = sql`jsonb_build_object('reason', ${of} ->> 'reason', 'delay_seconds', ${of} -> 'seconds',
                                        'worker', ended.locked_by)`
  // The list bounds what is read of the index: a join alone might be planned over all of it.
  const earlier = sql`earlier.job_id = any(array(select job_id from ended)) and earlier.job_id = ended.job_id
                      and earlier.event = 'job.retry_later'`
  return sql`
    with ${endedByFence({ t }, { jobIds, attemptIds })},
    ${requeueOnly({ t }, { runAfter, attempts: sql`attempts - 1` })},
    ${ifKeys(shape, letGoOfEnded({ t }))}
    folded as (
      update ${t.storedEvents} earlier
         set id = ${t.nextEventId}, attempt_id = ended.attempt_id, ts = ${t.now}, message = ${of} ->> 'reason',
             fields = ${fields} || jsonb_build_object(
               'times', coalesce((earlier.fields ->> 'times')::bigint, 1) + 1, 'first_at', earlier.fields -> 'first_at',
               'attempts', jsonb_path_query_array(
                 jsonb_build_array(${id}) || coalesce(earlier.fields -> 'attempts', '[]'), '$[0 to ${raw(String(namedAttempts - 1))}]'))
        from ended
       where ${earlier}
         and earlier.id = (select max(latest.id) from ${t.storedEvents} latest
                            where latest.job_id = ended.job_id and latest.event = 'job.retry_later')
    ),
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, event, message, fields)
      select job_id, attempt_id, ${t.now}, 'job.retry_later', ${of} ->> 'reason',
             ${fields} || jsonb_build_object('times', 1, 'first_at', ${t.now}, 'attempts', jsonb_build_array(${id}))
        from ended
       where not exists (select from ${t.storedEvents} earlier where ${earlier})
    )
    select attempt_id from ended`
})
