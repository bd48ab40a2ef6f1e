import type { Step } from '../commands.ts'
import { all, attemptOf, claimable, heldBy, type Job, type Model } from '../model.ts'
import { sweep } from './sweep.ts'

export function claim(
  m: Model,
  step: Extract<Step, { do: 'claim' }>,
): { attempt: number; job: number; ordinal: number }[] {
  const found = due(m, step.limit)
  if (found.length === 0) {
    const { expired, failed, closed } = sweep(m)
    if (expired.length + failed.length + closed.length > 0) found.push(...due(m, step.limit))
  }
  return found.map((job) => start(m, job, step))
}

function due(m: Model, limit: number): Job[] {
  const first = all(m)
    .filter((job) => claimable(m, job))
    .sort(
      (a, b) =>
        a.priority - b.priority ||
        a.due.minute - b.due.minute ||
        a.due.nth - b.due.nth ||
        m.accepted.indexOf(a.job) - m.accepted.indexOf(b.job),
    )
    .slice(0, limit)
  // Of several jobs of one slot the batch takes the first, and does not look for others in their place.
  return first.filter((job, nth) => job.slot === undefined || first.findIndex(({ slot }) => slot === job.slot) === nth)
}

export function claimJob(m: Model, step: Extract<Step, { do: 'claim_job' }>): unknown {
  const job = m.jobs[step.job]
  return job !== undefined && claimable(m, job) ? { claimed: true, ...start(m, job, step) } : { claimed: false }
}

function start(m: Model, job: Job, { worker, lease }: { worker: string; lease: number }) {
  const attempt = m.attempts.length
  const until = m.now + lease
  job.attempts += 1
  Object.assign(job, { status: 'running', attempt, worker, claimedAt: m.now, leaseUntil: until })
  const { maxAttempts } = job
  m.attempts.push({
    job: job.job,
    ordinal: job.attempts,
    maxAttempts,
    lease,
    links: [],
    settled: [],
  })
  if (job.lock !== undefined) m.locks[job.lock] = { job: job.job, attempt, until }
  if (job.slot !== undefined) m.slots[job.slot] = { job: job.job, held: undefined }
  job.events.push(`job.started@${attempt}`)
  return { attempt, job: job.job, ordinal: job.attempts }
}

/** Whoever renews keeps what he still has, be it only the lock or the slot of a job that was taken from him. */
export function renew(m: Model, attempts: readonly number[]): { lost: number[] } {
  for (const attempt of attempts) {
    const { job, lease } = attemptOf(m, attempt)
    const held = heldBy(m, attempt)
    if (held !== undefined) held.leaseUntil = m.now + lease
    for (const lock of Object.values(m.locks)) {
      if (lock.attempt === attempt && lock.job === job) lock.until = m.now + lease
    }
    for (const slot of Object.values(m.slots)) if (slot.held?.attempt === attempt) slot.held.until = m.now + lease
  }
  return { lost: attempts.filter((attempt) => heldBy(m, attempt) === undefined) }
}
