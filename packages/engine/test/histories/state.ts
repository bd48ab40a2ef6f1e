import { isLive, type Job, type Model } from './model.ts'
import type { JobRow, Snapshot } from './snapshot.ts'
import type { World } from './world.ts'

/*
 * The same picture drawn twice: from the model, and from the rows of the database. The two must be equal after every
 * step. Ids are numbers in it, and times are minutes since the history began.
 */

type Picture = Record<string, unknown>

/** What the database must hold. */
export function pictureOfModel(m: Model): Picture {
  const jobs = Object.values(m.jobs)
  return {
    jobs: Object.fromEntries(jobs.map((job) => [job.job, pictureOfJob(m, job)])),
    locks: Object.fromEntries(
      Object.entries(m.locks).map(([key, { job, attempt, until }]) => [
        key,
        { job, attempt: attempt ?? null, until: until ?? null },
      ]),
    ),
    slots: Object.fromEntries(
      Object.entries(m.slots).map(([key, { job, held }]) => [key, { job, held: held ?? null }]),
    ),
    drain: m.drain,
    ledger: m.ledger,
  }
}

function pictureOfJob(m: Model, job: Job): Picture {
  const isRunning = job.status === 'running'
  const children = Object.values(m.jobs).filter(({ parent }) => parent === job.job)
  const ended = (how: 'completed' | 'else') =>
    children.filter((child) => !isLive(child) && (child.status === 'completed') === (how === 'completed')).length
  return {
    status: job.status,
    attempts: `${job.attempts} of ${job.maxAttempts}`,
    attempt: job.attempt ?? null,
    due: isLive(job) ? job.due.minute : null,
    worker: isRunning ? (job.worker ?? null) : null,
    claimedAt: isRunning ? (job.claimedAt ?? null) : null,
    leaseUntil: job.leaseUntil ?? null,
    keys: [job.lock ?? null, job.slot ?? null, job.dedup ?? null],
    isCurrent: job.slot !== undefined && m.slots[job.slot]?.job === job.job,
    parent: job.parent ?? null,
    pipeline: job.pipeline ?? null,
    children: job.family === undefined ? null : [job.family.total, ended('completed'), ended('else')],
    deferred: job.deferred,
    progress: job.progress ?? null,
    result: job.result,
    errorCode: job.errorCode ?? null,
    completedAt: job.completedAt ?? null,
    deleted: job.deleted,
    queued: isLive(job)
      ? isRunning && !(job.leaseUntil !== undefined && job.leaseUntil <= m.now)
        ? 'taken'
        : 'open'
      : null,
    steps: job.steps.map(({ attempt, step, success, result }, nth) => ({
      attempt,
      ordinal: nth + 1,
      step,
      success,
      result,
    })),
    events: inOrder(job.events),
  }
}

/** What the database holds, `began` being its time when the history began. */
export function pictureOfSnapshot(world: World, snapshot: Snapshot, began: string): Picture {
  const start = Date.parse(began)
  const minuteOf = (time: string | null | undefined) =>
    time === null || time === undefined ? null : Math.floor((Date.parse(time) - start) / 60_000)
  const attempt = (id: string | null) => (id === null ? null : (world.attemptOf(id) ?? id))
  const job = (id: string | null) => (id === null ? null : (world.jobOf(id) ?? id))
  const rows = [...snapshot.live, ...snapshot.finished]
  return {
    jobs: Object.fromEntries(
      rows.map((row) => [row.payload.job, pictureOfRow(snapshot, row, { minuteOf, attempt, job })]),
    ),
    locks: Object.fromEntries(
      snapshot.locks.map((lock) => [
        lock.lock_key,
        { job: job(lock.job_id), attempt: attempt(lock.attempt_id), until: minuteOf(lock.expires_at) },
      ]),
    ),
    // While its job runs, the job's own row is what keeps a slot closed.
    slots: Object.fromEntries(
      snapshot.slots.map((slot) => [
        slot.slot_key,
        {
          job: job(slot.job_id),
          held:
            slot.attempt_id === null ? null : { attempt: attempt(slot.attempt_id), until: minuteOf(slot.held_until) },
        },
      ]),
    ),
    drain: snapshot.settings.find(({ key }) => key === 'drain')?.value ?? 'off',
    ledger: snapshot.ledger.map((row) => attempt(row.attempt_id)),
  }
}

interface Names {
  minuteOf: (time: string | null | undefined) => number | null
  attempt: (id: string | null) => number | string | null
  job: (id: string | null) => number | string | null
}

function pictureOfRow(snapshot: Snapshot, row: JobRow, { minuteOf, attempt, job }: Names): Picture {
  const mine = <T extends { job_id: string }>(others: readonly T[]) => others.filter((one) => one.job_id === row.job_id)
  const isRunning = row.status === 'running'
  const [seen] = mine(snapshot.seen)
  const [queued] = mine(snapshot.queue)
  return {
    status: row.status,
    attempts: `${row.attempts} of ${row.max_attempts}`,
    attempt: attempt(row.attempt_id),
    due: isRunning || row.status === 'pending' ? minuteOf(row.run_after) : null,
    worker: isRunning ? row.locked_by : null,
    claimedAt: isRunning ? minuteOf(row.locked_at) : null,
    leaseUntil: minuteOf(row.lease_until),
    keys: [row.lock_key, row.slot_key, row.dedup_key],
    isCurrent: seen?.is_current,
    parent: job(row.parent_job_id),
    pipeline: job(row.pipeline_id),
    children:
      row.children_total === null ? null : [row.children_total, seen?.children_completed, seen?.children_failed],
    deferred: row.deferred_at !== null,
    progress: row.progress_current,
    result: row.result,
    errorCode: row.error_code,
    completedAt: minuteOf(row.completed_at),
    deleted: row.deleted_at !== null && row.deleted_at !== undefined,
    queued: queued === undefined ? null : queued.claimed_at === null ? 'open' : 'taken',
    steps: mine(snapshot.steps).map((one) => ({
      attempt: attempt(one.attempt_id),
      ordinal: one.ordinal,
      step: one.step,
      success: one.success,
      result: one.result,
    })),
    // A renewal that was turned away is told once, and when exactly is the worker's affair: see Invariants.
    events: inOrder(
      mine(snapshot.events)
        .filter(({ fields }) => fields?.verb !== 'renew')
        .map(({ event, attempt_id: by }) => (by === null ? event : `${event}@${attempt(by)}`)),
    ),
  }
}

// Several attempts that are turned away by one statement are so in no order.
function inOrder(events: readonly string[]): string[] {
  const sorted = [...events]
  const isRejection = (event: string | undefined) => event?.startsWith('job.fence_rejected') === true
  for (let from = 0; from < sorted.length; from += 1) {
    let to = from
    while (isRejection(sorted[to])) to += 1
    if (to > from) sorted.splice(from, to - from, ...sorted.slice(from, to).sort())
    from = to
  }
  return sorted
}
