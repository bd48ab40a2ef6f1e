import { all, childrenOf, isLive, type Job, type Model } from '../model.ts'

/** Back to pending: the lock stays the job's, with nobody at work on it. */
/** Puts a job back to pending. Without a delay it keeps its place in the order. */
export function putBack(m: Model, job: Job, delay?: number): void {
  free(m, job, 'keep')
  if (delay !== undefined) job.due = { minute: m.now + delay, nth: m.asked }
  Object.assign(job, { status: 'pending', attempt: undefined, leaseUntil: undefined })
}

export function finish(
  m: Model,
  job: Job,
  over: { status: 'completed' | 'failed'; attempt?: number; about?: number; result?: unknown; errorCode?: string },
): void {
  free(m, job, 'drop')
  const about = over.attempt ?? over.about
  job.events.push(about === undefined ? `job.${over.status}` : `job.${over.status}@${about}`)
  job.status = over.status
  job.attempt = over.attempt
  job.leaseUntil = undefined
  job.completedAt = m.now
  job.errorCode = over.errorCode
  job.result = over.result ?? job.result
}

/** Whoever ends an attempt frees what that attempt has, and only that. */
export function free(m: Model, job: Job, how: 'keep' | 'drop'): void {
  const lock = job.lock === undefined ? undefined : m.locks[job.lock]
  if (job.lock !== undefined && lock?.job === job.job && lock.attempt === job.attempt) {
    if (how === 'drop') delete m.locks[job.lock]
    else Object.assign(lock, { attempt: undefined, until: undefined })
  }
}

/** A parent closes when its last child ends, and may be somebody's last child itself. */
export function closeParents(m: Model): Job[] {
  const ready = all(m).filter(
    (job) => job.status === 'running' && job.deferred && !childrenOf(m, job.job).some((child) => isLive(child)),
  )
  for (const parent of ready) {
    const failed = childrenOf(m, parent.job).filter(({ status }) => status !== 'completed').length
    if (failed < (parent.family?.failAt ?? 0)) finish(m, parent, { status: 'completed' })
    else finish(m, parent, { status: 'failed', errorCode: 'children_failed' })
  }
  return ready.length === 0 ? [] : [...ready, ...closeParents(m)]
}
