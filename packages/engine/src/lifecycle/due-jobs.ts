import type { Relations } from '../database/relations.ts'
import { sql, type Blanks, type Sql } from '../database/sql.ts'
import { mayStart } from './start-by.ts'

/*
 * Which due jobs of a queue a claim takes: the first `limit` in the order (priority, run_after, submission), read from
 * indexes, so that the reading is bounded by the limit, whatever waits in the queue.
 *
 * Three kinds of jobs must not be in the way, however many they are:
 * - Those of operations that the claimer does not have. Every index begins with queue and operation, each operation is
 *   read by itself, and the answers are merged.
 * - Those that are not due. `heads` goes from priority to priority; behind one, the due jobs are one range of the index.
 * - Those of busy slots. They have indexes of their own. Of each priority the first `limit` are read in order; when that
 *   is not enough, the rest is found by going from slot to slot, one job of each.
 * Limit: jobs found from slot to slot are chosen by the names of their slots, not by their order, where there are more
 * of them than were asked for. And those reads grow with the number of slots, though not with the jobs in them.
 *
 * `chosen` locks nothing. Plain jobs are then locked by count: so many of this priority and operation. Jobs that another
 * claim has locked are passed over, and no more are locked than are claimed.
 */

export interface Wanted {
  queue: string
  operations: readonly string[]
  limit: number
}

/** The columns of `due`. */
export const dueColumns = sql`job.ctid as place, job.job_id, job.operation, job.slot_key, job.priority, job.run_after`
const foundColumns = sql`job.place, job.job_id, job.operation, job.slot_key, job.priority, job.run_after`

/** The CTEs `heads`, `chosen` and `due`: the last has the rows to claim, locked. Two of them may be of one slot. */
export function dueOfQueue(t: Relations, wanted: Blanks<Wanted>, allowed: Sql): Sql {
  const { limit } = wanted
  return sql`
    heads (priority) as (
      (${nextPriority(t, wanted, sql`true`)})
      union all
      select (${nextPriority(t, wanted, sql`job.priority > heads.priority`)}) from heads where heads.priority is not null
    ),
    chosen as materialized (
      select found.*
        from heads
       cross join lateral (
         select * from (${plainCandidates(t, wanted)} union all ${slottedCandidates(t, wanted)}) candidate
          order by candidate.run_after, candidate.job_id
          limit ${limit}::integer
       ) found
       where heads.priority is not null and ${allowed}
       limit ${limit}::integer
    ),
    due as (
      select locked.*
        from (select operation, priority, count(*) as share from chosen where slot_key is null group by 1, 2) plain
       cross join lateral (
         select ${dueColumns}
           from ${t.liveJobs} job
          where ${pending(wanted.queue, 'plain')} and job.operation = plain.operation and job.priority = plain.priority
            and ${isDue(t)} and ${lockIsFree(t)}
          order by job.run_after, job.job_id
          limit plain.share
            for update of job skip locked
       ) locked
      union all
      select locked.*
        from chosen
       cross join lateral (
         select ${dueColumns}
           from ${t.liveJobs} job
          where job.ctid = chosen.place and job.job_id = chosen.job_id and job.status = 'pending'
            for update of job skip locked
       ) locked
       where chosen.slot_key is not null
    )`
}

// The smallest priority of any of the operations, with or without slot.
function nextPriority(t: Relations, wanted: Blanks<Wanted>, beyond: Sql): Sql {
  const first = (kind: Kind) => sql`
    (select job.priority from ${t.liveJobs} job
      where ${pending(wanted.queue, kind)} and job.operation = wanted.operation and ${beyond}
      order by job.priority limit 1)`
  return sql`
    select min(least(${first('plain')}, ${first('slotted')}))
      from unnest(${wanted.operations}::text[]) wanted (operation)`
}

function plainCandidates(t: Relations, wanted: Blanks<Wanted>): Sql {
  return sql`
    select job.*
      from unnest(${wanted.operations}::text[]) wanted (operation)
     cross join lateral (
       select ${dueColumns}
         from ${t.liveJobs} job
        where ${pending(wanted.queue, 'plain')} and job.operation = wanted.operation and job.priority = heads.priority
          and ${isDue(t)} and ${lockIsFree(t)}
        order by job.run_after, job.job_id
        limit ${wanted.limit}::integer
     ) job`
}

function slottedCandidates(t: Relations, wanted: Blanks<Wanted>): Sql {
  return sql`
    select job.*
      from unnest(${wanted.operations}::text[]) wanted (operation)
     cross join lateral (
       with recursive early as materialized (
         select ${dueColumns}, job.lock_key
           from ${t.liveJobs} job
          where ${pending(wanted.queue, 'slotted')} and job.operation = wanted.operation and job.priority = heads.priority
            and ${isDue(t)}
          order by job.run_after, job.job_id
          limit ${wanted.limit}::integer
       ),
       first_of_slot as materialized (
         select distinct on (slot_key) * from early order by slot_key, run_after, job_id
       ),
       slot_names (slot_key) as (
         select ''
          where (select count(*) from early) = ${wanted.limit}::integer
         union all
         select (select job.slot_key from ${t.liveJobs} job
                  where ${pending(wanted.queue, 'by slot')} and job.operation = wanted.operation
                    and job.priority = heads.priority and job.slot_key > slot_names.slot_key
                  order by job.slot_key limit 1)
           from slot_names where slot_names.slot_key is not null
       )
       select * from (
         select ${foundColumns}
           from first_of_slot job
          where ${nothingInTheWay(t)}
         union all
         select ${foundColumns}
           from slot_names
          cross join lateral (
            select ${dueColumns}, job.lock_key
              from ${t.liveJobs} job
             where ${pending(wanted.queue, 'by slot')} and job.operation = wanted.operation
               and job.priority = heads.priority and job.slot_key = slot_names.slot_key and ${isDue(t)}
             order by job.run_after, job.job_id
             limit 1
          ) job
          where slot_names.slot_key not in (select slot_key from first_of_slot) and ${nothingInTheWay(t)}
       ) free
       limit ${wanted.limit}::integer
     ) job`
}

export type Kind = 'plain' | 'slotted' | 'by slot'

const kinds: Record<Kind, Sql> = {
  plain: sql`job.slot_key is null`,
  slotted: sql`job.slot_key is not null and job.locked_by is null`,
  'by slot': sql`job.slot_key is not null and job.deferred_at is null`,
}

/** The pending jobs of a queue, in the words of the one index to read them from. */
export function pending(queue: unknown, kind: Kind): Sql {
  return sql`${pendingOf(kind)} and job.queue = ${queue}`
}

/** The same of all queues. */
export function pendingOf(kind: Kind): Sql {
  return sql`job.status = 'pending' and ${kinds[kind]}`
}

/** True for a job whose time has come, and has not passed. */
export function isDue(t: Relations): Sql {
  return sql`job.run_after <= ${t.now} and ${mayStart(t)}`
}

/** True for a job that only has to be due: it waits for no other job and no other worker. */
export function nothingInTheWay(t: Relations): Sql {
  return sql`(job.slot_key is null or ${slotIsFree(t)}) and ${lockIsFree(t)}`
}

// A job of a slot waits while another of the slot runs, or while a worker whose job was cancelled may still be at it.
function slotIsFree(t: Relations): Sql {
  return sql`(
      not exists (select from ${t.liveJobs} other
                   where other.slot_key = job.slot_key and other.slot_key is not null and other.status = 'running')
      and not exists (select from ${t.slots} slot where slot.slot_key = job.slot_key and slot.held_until > ${t.now}))`
}

// A job with a lock waits while an earlier attempt of its own, put back by an operator, may still be at work.
function lockIsFree(t: Relations): Sql {
  return sql`(job.lock_key is null or not exists (
      select from ${t.resourceLocks} held where held.lock_key = job.lock_key and held.expires_at > ${t.now}))`
}
