import type { Db } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { checkInteger, maxInteger } from '../check.ts'
import { FencepostError } from '../errors.ts'
import type { OnLocked, Operation } from '../operation.ts'
import { complete } from './complete.ts'
import { endedByFence, fenceValues, operationOf, rememberStart, type Settling } from './finish.ts'
import { continuing, letGoOfEnded } from './requeue.ts'
import type { Submission, SubmitOptions } from './submission.ts'
import { claimableIds, insertSubmissions, type Submitted } from './submit.ts'

/** When a parent fails for its children: if any failed, if all failed, if more than this part of them failed, or never. */
export type FailWhen = 'any' | 'all' | 'never' | { ratio: number }

/** A child that a coordinator asks for. */
export interface Child {
  operation: Operation
  payload: unknown
  options: SubmitOptions
}

export interface DeferOptions {
  failWhen?: FailWhen
  /** The job's result if it completes. Not together with `then`: what that part returns is the result. */
  result?: unknown
  /** The part of the operation that runs when the children have ended, unless the job fails for them. */
  then?: string
  /** What becomes of a child whose lock is held: all of it is refused, the child waits in line, or is left out. */
  onLocked?: OnLocked | 'skip'
}

/** What a coordinator's handler returns: its job then waits for these children, with no worker and no lease. */
export class Defer {
  readonly children: readonly Child[]
  readonly failWhen: FailWhen
  readonly result: unknown
  readonly then_: string | undefined // a property `then` would make it a promise
  readonly onLocked: OnLocked | 'skip' | undefined

  constructor(children: readonly Child[], options: DeferOptions) {
    this.children = children
    this.failWhen = options.failWhen ?? 'any'
    this.result = options.result
    this.then_ = options.then
    this.onLocked = options.onLocked
    failAt(this.failWhen, children.length)
    if (options.then !== undefined && options.result !== undefined) {
      throw new FencepostError(
        'options_invalid',
        'defer() is given both result and then; return the result from the part.',
      )
    }
    if (options.onLocked !== undefined && !['refuse', 'wait', 'skip'].includes(options.onLocked)) {
      const given = String(options.onLocked)
      throw new FencepostError('options_invalid', `onLocked of defer() is ${given}; give 'refuse', 'wait' or 'skip'.`)
    }
  }
}

/** Ends a handler by handing over to children. */
export function defer(children: readonly Child[], options: DeferOptions = {}): Defer {
  return new Defer(children, options)
}

/** One child for defer(), typed by the operation's schema. */
export function child<Input>(operation: Operation<Input>, payload: Input, options: SubmitOptions = {}): Child {
  return { operation, payload, options }
}

/** How many failed children make the parent fail. */
function failAt(failWhen: FailWhen, total: number): number {
  if (failWhen === 'any') return 1
  if (failWhen === 'all') return Math.max(1, total)
  if (failWhen === 'never') return maxInteger
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

/** Thrown likewise when a child would wait for what its own parent, or one further up, keeps until the child has ended. */
export class AncestorsKey extends Error {
  readonly kind: 'slot' | 'lock'
  readonly key: string

  constructor(kind: 'slot' | 'lock', key: string) {
    super('ancestor’s key')
    this.kind = kind
    this.key = key
  }
}

export interface Deferral {
  children: readonly Submission[]
  failWhen: FailWhen
  result: string
  then?: string | undefined
}

/** What became of a deferral: the children that can be claimed, in order, and the queue that the job itself is in again. */
export interface Deferred {
  jobIds: (string | undefined)[]
  continuedIn: string | undefined
}

interface ParentRow {
  queue: string
  pipeline_id: string | null
  children_before: number
  failed_before: number
  /** The place of job.deferred in the history: before the children that it is about. */
  event_id: bigint
  event_ts: string
}

/** Up to so many of the locks that children were left out for are named. */
const namedLocks = 100

/**
 * defer: running → running without a lease, waiting for its children. Runs in the caller's transaction: the fence is
 * checked and the row locked first, so that the children exist only if this attempt was still the current one. With no
 * child left to wait for, the job goes on at once: to its next part, or to its end.
 */
export async function deferAttempt(db: Db, settling: Settling, deferral: Deferral): Promise<Deferred | undefined> {
  const { t } = db
  const { children, result } = deferral
  // Of an earlier defer: all of those have ended, or no part of this job would run.
  const earlier = sql`select count(*) from ${t.finishedJobs} child where child.parent_job_id = ended.job_id`
  const [parent] = await db.query<ParentRow>(
    'defer.parent',
    sql`
    with ${endedByFence(db, fenceValues([settling]))}
    select queue, pipeline_id, coalesce(children_total, 0) as children_before,
           case when children_total is null then 0
                else (${earlier} and child.status <> 'completed')::integer end as failed_before,
           ${t.nextEventId} as event_id, ${t.now} as event_ts
      from ended`,
  )
  if (parent === undefined) return undefined
  await refuseAncestorsKeys(db, settling.jobId, children)
  const answers = await insertSubmissions(db, children, {
    from: 'parent',
    parentJobId: settling.jobId,
    pipelineId: parent.pipeline_id ?? undefined,
  })
  const skipped = skippedOf(children, answers)
  const total = answers.filter(({ submitted }) => submitted).length
  await tellDeferred(db, settling, parent, total, skipped, deferral.then)
  if (total > 0) await waitForChildren(db, settling, parent, total, skipped, deferral)
  else if (deferral.then === undefined) await complete(db, [{ ...settling, result }])
  else await goOnAtOnce(db, settling, skipped, deferral.then)
  return {
    jobIds: claimableIds(answers),
    continuedIn: total === 0 && deferral.then !== undefined ? parent.queue : undefined,
  }
}

/** Children that were left out because their locks are held. */
interface Skipped {
  count: number
  locks: { lock_key: string; holder: string }[]
}

function skippedOf(children: readonly Submission[], answers: readonly Submitted[]): Skipped | undefined {
  const skipped: Skipped = { count: 0, locks: [] }
  for (const [nth, answer] of answers.entries()) {
    if (answer.submitted) continue
    if (answer.why !== 'locked' || children[nth]?.onLocked !== 'skip') throw new ChildConflict(answer)
    skipped.count += 1
    if (skipped.count <= namedLocks) skipped.locks.push({ lock_key: answer.lockKey, holder: answer.holder.jobId })
  }
  return skipped.count > 0 ? skipped : undefined
}

// Before the job may end: what is told here is also how a repeated report knows that it has landed.
async function tellDeferred(
  db: Db,
  { jobId, attemptId }: Settling,
  { event_id: id, event_ts: ts }: ParentRow,
  total: number,
  skipped: Skipped | undefined,
  then: string | undefined,
): Promise<void> {
  const { t } = db
  const fields = { children: total, then, skipped: skipped?.count }
  await db.query(
    'defer.told',
    sql`insert into ${t.storedEvents} (id, job_id, attempt_id, ts, level, event, fields)
        select coalesce(id, ${t.nextEventId}), ${jobId}::uuid, ${attemptId}::uuid, coalesce(ts, ${t.now}), level, event,
               fields::jsonb
          from (values (${id}::bigint, ${ts}::timestamptz, 'info', 'job.deferred', ${JSON.stringify(fields)}::text),
                       (null, null, 'warning', 'job.children_skipped', ${skipped ? JSON.stringify(skipped) : null}))
               told (id, ts, level, event, fields)
         where fields is not null`,
  )
}

async function waitForChildren(
  db: Db,
  settling: Settling,
  parent: ParentRow,
  total: number,
  skipped: Skipped | undefined,
  { failWhen, result, then }: Deferral,
): Promise<void> {
  const { t } = db
  // Those of an earlier defer have been judged.
  const childrenFailAt = Math.min(maxInteger, parent.failed_before + failAt(failWhen, total))
  await db.query(
    'defer.wait',
    sql`
    with ${endedByFence(db, fenceValues([settling]))},
    deferred as (
      update ${t.liveJobs}
         set deferred_at = ${t.now}, children_total = ${parent.children_before + total}::integer,
             children_fail_at = ${childrenFailAt}::integer, result = nullif(${result}::jsonb, 'null'),
             operation = ${operationOf}, next_part = ${then ?? null},
             children_skipped = ${skipped ? JSON.stringify(skipped) : null}::jsonb,
             attempt_id = null, lease_until = null, started_event_id = null, error = null, error_code = null
       where job_id = any(array(select job_id from ended))
    ),
    ${letGoOfEnded(db)},
    ${rememberStart(db)}
    select job_id from ended`,
  )
}

async function goOnAtOnce(db: Db, settling: Settling, skipped: Skipped | undefined, then: string): Promise<void> {
  const { t } = db
  await db.query(
    'defer.continue',
    sql`
    with ${endedByFence(db, fenceValues([settling]))},
    continued as (
      update ${t.liveJobs}
         set children_total = coalesce(children_total, 0),
             children_skipped = ${skipped ? JSON.stringify(skipped) : null}::jsonb, ${continuing(t, sql`${then}::text`)}
       where job_id = any(array(select job_id from ended))
    ),
    ${letGoOfEnded(db)},
    ${rememberStart(db)},
    told as (
      insert into ${t.storedEvents} (job_id, ts, event, fields)
      select job_id, ${t.now}, 'job.continued',
             jsonb_build_object('part', ${then}::text, 'children_completed', 0, 'children_failed', 0)
        from ended
    )
    select job_id from ended`,
  )
}

// Such a child could never run, and its parent would wait for ever. Limit: two parents that wait for a child in each
// other's slot, or for each other's lock, are not found out.
async function refuseAncestorsKeys(db: Db, parentJobId: string, children: readonly Submission[]): Promise<void> {
  const slotKeys = children.flatMap(({ slotKey }) => slotKey ?? [])
  const lockKeys = children.flatMap(({ lockKey, onLocked }) => (onLocked === 'wait' ? (lockKey ?? []) : []))
  if (slotKeys.length + lockKeys.length === 0) return
  const { t } = db
  const [taken] = await db.query<{ slot_key: string | null; lock_key: string | null }>(
    'defer.ancestors',
    sql`
    with recursive line (job_id, parent_job_id, slot_key, lock_key) as (
      select job_id, parent_job_id, slot_key, lock_key from ${t.liveJobs} where job_id = ${parentJobId}
      union all
      select job.job_id, job.parent_job_id, job.slot_key, job.lock_key
        from ${t.liveJobs} job join line on job.job_id = line.parent_job_id
    )
    select case when slot_key = any(${slotKeys}::text[]) then slot_key end as slot_key, lock_key from line
     where slot_key = any(${slotKeys}::text[]) or lock_key = any(${lockKeys}::text[]) limit 1`,
  )
  if (taken === undefined) return
  if (taken.slot_key !== null) throw new AncestorsKey('slot', taken.slot_key)
  throw new AncestorsKey('lock', taken.lock_key ?? '')
}
