import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { checkInteger } from '../check.ts'
import { FencepostError } from '../errors.ts'
import type { Operation } from '../operation.ts'
import type { Fence } from './outcome.ts'
import { endedByFence, fenceValues, rememberStart } from './finish.ts'
import { letGoOfEnded } from './requeue.ts'
import type { Submission, SubmitOptions } from './submission.ts'
import { insertSubmissions, type Submitted } from './submit.ts'

/** When a parent fails for its children: if any failed, if all failed, or if more than this part of them failed. */
export type FailWhen = 'any' | 'all' | { ratio: number }

/** A child that a coordinator asks for. */
export interface Child {
  operation: Operation
  payload: unknown
  options: SubmitOptions
}

/** What a coordinator's handler returns: its job then waits for these children, with no worker and no lease. */
export class Defer {
  readonly children: readonly Child[]
  readonly failWhen: FailWhen
  readonly result: unknown

  constructor(children: readonly Child[], options: { failWhen?: FailWhen; result?: unknown }) {
    this.children = children
    this.failWhen = options.failWhen ?? 'any'
    this.result = options.result
    failAt(this.failWhen, children.length)
  }
}

/** Ends a handler by handing over to children. `result` becomes the job's result if it completes. */
export function defer(children: readonly Child[], options: { failWhen?: FailWhen; result?: unknown } = {}): Defer {
  return new Defer(children, options)
}

/** One child for defer(), typed by the operation's schema. */
export function child<Input>(operation: Operation<Input>, payload: Input, options: SubmitOptions = {}): Child {
  return { operation, payload, options }
}

/** How many failed children make the parent fail. */
export function failAt(failWhen: FailWhen, total: number): number {
  if (failWhen === 'any') return 1
  if (failWhen === 'all') return Math.max(1, total)
  const { ratio } = failWhen
  if (!(ratio >= 0 && ratio <= 1)) {
    throw new FencepostError('number_invalid', `failWhen.ratio is ${ratio}; give a number from 0 to 1.`)
  }
  return checkInteger(Math.floor(ratio * total) + 1, 'the number of failed children', 1)
}

/** Thrown inside the transaction to take back what it has written; never leaves this module's callers. */
export class ChildConflict extends Error {
  readonly conflict: Extract<Submitted, { submitted: false }>

  constructor(conflict: Extract<Submitted, { submitted: false }>) {
    super('child conflict')
    this.conflict = conflict
  }
}

/** Thrown likewise when a child wants a slot that its own parent, or one further up, occupies until the child has ended. */
export class AncestorsSlot extends Error {
  readonly slotKey: string

  constructor(slotKey: string) {
    super('ancestor’s slot')
    this.slotKey = slotKey
  }
}

/**
 * defer: running → running without a lease, waiting for its children. Runs in the caller's transaction: the fence is
 * checked and the row locked first, so that the children exist only if this attempt was still the current one.
 */
export async function deferAttempt(
  db: Db,
  fence: Fence,
  deferral: { children: readonly Submission[]; failAt: number; result: string },
): Promise<string[] | undefined> {
  const { t } = db
  const [parent] = await db.query<{ pipeline_id: string | null }>(
    'defer.parent',
    sql`
    with ${endedByFence(db, fenceValues([fence]))},
    deferred as (
      update ${t.liveJobs}
         set deferred_at = ${t.now}, children_total = ${deferral.children.length}::integer,
             children_fail_at = ${deferral.failAt}::integer, result = nullif(${deferral.result}::jsonb, 'null'),
             attempt_id = null, lease_until = null, started_event_id = null, error = null, error_code = null
       where job_id = any(array(select job_id from ended))
    ),
    ${letGoOfEnded(db)},
    ${rememberStart(db)},
    told as (
      insert into ${t.storedEvents} (job_id, attempt_id, ts, event, fields)
      select job_id, attempt_id, ${t.now}, 'job.deferred',
             jsonb_build_object('children', ${deferral.children.length}::integer)
        from ended
    )
    select pipeline_id from ended`,
  )
  if (parent === undefined) return undefined
  await refuseAncestorsSlots(
    db,
    fence.jobId,
    deferral.children.flatMap(({ slotKey }) => slotKey ?? []),
  )
  const pipelineId = parent.pipeline_id ?? undefined
  const answers = await insertSubmissions(db, deferral.children, {
    from: 'parent',
    parentJobId: fence.jobId,
    pipelineId,
  })
  return answers.map((answer) => {
    if (!answer.submitted) throw new ChildConflict(answer)
    return answer.jobId
  })
}

// Such a child could never run, and its parent would wait for ever. Limit: two parents that wait for a child in each
// other's slot are not found out.
async function refuseAncestorsSlots(db: Db, parentJobId: string, slotKeys: readonly string[]): Promise<void> {
  if (slotKeys.length === 0) return
  const { t } = db
  const [taken] = await db.query<{ slot_key: string }>(
    'defer.ancestors',
    sql`
    with recursive line (job_id, parent_job_id, slot_key) as (
      select job_id, parent_job_id, slot_key from ${t.liveJobs} where job_id = ${parentJobId}
      union all
      select job.job_id, job.parent_job_id, job.slot_key
        from ${t.liveJobs} job join line on job.job_id = line.parent_job_id
    )
    select slot_key from line where slot_key = any(${slotKeys}::text[]) limit 1`,
  )
  if (taken !== undefined) throw new AncestorsSlot(taken.slot_key)
}
