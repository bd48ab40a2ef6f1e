import type { Db } from '../database/database.ts'
import type { Relations } from '../database/relations.ts'
import { form, raw, sql, type Sql } from '../database/sql.ts'
import { dashedId } from '../ids.ts'
import { fenceValues, operationOf, removedByFence, type FenceValues, type Settling } from './finish.ts'
import { chainEnded, linkedOf, type LinkRow } from './link.ts'
import type { Submission } from './submission.ts'

/*
 * complete: running → completed, by the attempt that holds the fence.
 *
 * One statement for a whole batch. The row is deleted first and the finished record made from what was really deleted,
 * so a late report finds nothing and writes nothing. The same holds for the jobs it chains.
 */

export interface Completion extends Settling {
  /** The result as JSON text. */
  result?: string | undefined
  /** True when this attempt chains a job: its job then belongs to a pipeline, its own if to no other. */
  chains?: boolean
}

/** An attempt whose completion was written. */
export interface SettledRow {
  job_id: string
  attempt_id: string
  parent_job_id: string | null
  pipeline_id: string | null
}

/** Completes every attempt that still holds its fence; those are returned. */
export async function complete(db: Db, completions: readonly Completion[]): Promise<SettledRow[]> {
  if (completions.length === 0) return []
  return db.query<SettledRow>('complete', completeStatement(db, completions, 'rows'))
}

/** The same for very many; how many were written is read much sooner than which. */
export async function completeMany(db: Db, completions: readonly Completion[]): Promise<number> {
  if (completions.length === 0) return 0
  const [row] = await db.query<{ count: number }>('complete', completeStatement(db, completions, 'count'))
  return row?.count ?? 0
}

export interface ChainingCompletion extends Completion {
  /** The jobs that are to exist if the attempt completes, none of them with a lock or a dedup key. */
  links: readonly Submission[]
}

/** The same for attempts that chain jobs: their ids, in order, by the attempt that chained them. */
export async function completeChaining(
  db: Db,
  completions: readonly ChainingCompletion[],
): Promise<Map<string, string[]>> {
  const chained = new Map<string, string[]>()
  if (completions.length === 0) return chained
  const chaining = completions.map((completion) => ({ ...completion, chains: true }))
  const rows = await db.query<LinkRow>('complete', completeStatement(db, chaining, 'links'))
  for (const { attempt_id: attemptId, chained_job_id: jobId } of rows) {
    const jobIds = chained.get(attemptId) ?? []
    chained.set(attemptId, jobIds)
    if (jobId !== null) jobIds.push(jobId)
  }
  return chained
}

/** The statement, for the test that reads its plan. */
export function completeStatement(
  { t }: Pick<Db, 't'>,
  completions: readonly (Completion & { links?: readonly Submission[] })[],
  answer: Shape['answer'],
): Sql {
  // By attempt and not by job: a late report of an earlier attempt may be in the same batch.
  const results = completions
    .filter(({ result }) => result !== undefined && result !== 'null')
    .map(({ attemptId, result }) => `"${dashedId(attemptId)}":${result}`)
  const values: Values = {
    ...fenceValues(completions),
    results: `{${results.join(',')}}`,
    chaining: completions.filter(({ chains }) => chains).map(({ jobId }) => jobId),
    links: answer === 'links' ? linkedOf(completions) : '{}',
  }
  const shape: Shape = {
    answer,
    keys: completions.some(({ hasKeys }) => hasKeys) ? 'some' : 'none',
    results: results.length > 0 ? 'some' : 'none',
  }
  return completing(t, values, JSON.stringify(shape))
}

/** What a batch has none of, its statement does not look for. */
interface Shape {
  answer: 'rows' | 'count' | 'links'
  keys: 'some' | 'none'
  results: 'some' | 'none'
}

interface Values extends FenceValues {
  /** Results by attempt, as JSON. */
  results: string
  chaining: readonly string[]
  /** Chained jobs by attempt, as JSON. */
  links: string
}

const answers = {
  count: sql`select count(*)::integer from ended`,
  rows: sql`select job_id, attempt_id, parent_job_id, pipeline_id from ended`,
  links: sql`select attempt_id, null as chained_job_id, 0 as nth from ended
             union all select attempt_id, job_id, nth from linked order by nth`,
} as const satisfies Record<Shape['answer'], Sql>

const completing = form<Relations, Values>((t, { jobIds, attemptIds, results, chaining, links }, asked) => {
  const shape = JSON.parse(asked) as Shape
  const result = shape.results === 'some' ? sql`${results}::jsonb -> attempt_id::text` : sql`null::jsonb`
  const chains = shape.answer === 'links'
  // What an attempt chained stands in its history before its end, so those events draw their ids first.
  const eventId = chains ? sql`case when (select count(*) from linked) >= 0 then ${t.nextEventId} end` : t.nextEventId
  return sql`
    with ${removedByFence(t, { jobIds, attemptIds })},
    ${chains ? chainEnded(t, links) : raw('')}
    finished as (
      insert into ${t.finishedJobs} (
        job_id, operation, queue, payload, status, priority, run_after, attempt_id, attempts, max_attempts, locked_by,
        locked_at, lock_key, slot_key, dedup_key, parent_job_id, pipeline_id, progress_current, progress_total, result,
        submitted_at, submitted_by, started_at, completed_at, submitted_event_id, started_event_id, completed_event_id,
        tags, timeout_ms, start_by, children_total)
      select job_id, ${operationOf}, queue, payload, 'completed', priority, run_after, attempt_id, attempts, max_attempts,
             locked_by, locked_at, lock_key, slot_key, dedup_key, parent_job_id,
             case when job_id = any(${chaining}::uuid[]) then coalesce(pipeline_id, job_id) else pipeline_id end,
             progress_current, progress_total, ${result},
             submitted_at, submitted_by, started_at, ${t.now}, submitted_event_id, started_event_id, ${eventId},
             tags, timeout_ms, start_by, children_total
        from ended
    )${shape.keys === 'some' ? freed(t) : raw('')}
    ${answers[shape.answer]}`
})

function freed(t: Relations): Sql {
  return sql`,
    unlocked as (
      delete from ${t.resourceLocks}
       where lock_key = any(array(select lock_key from ended where lock_key is not null))
         and job_id = any(array(select job_id from ended where lock_key is not null))
         and attempt_id = any(array(select attempt_id from ended where lock_key is not null))
    ),
    left_slots as (
      update ${t.slots} set held_until = null, attempt_id = null
       where slot_key = any(array(select slot_key from ended where slot_key is not null))
         and job_id = any(array(select job_id from ended where slot_key is not null))
    )`
}
