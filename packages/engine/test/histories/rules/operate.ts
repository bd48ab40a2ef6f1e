import { all, childrenOf, isLive, minutes, numbers, type Job, type Model } from '../model.ts'
import { closeParents } from './end.ts'

/** A running job's lock and slot stay with its attempt: its worker may still be at work. */
export function cancel(m: Model, number: number): unknown {
  const root = m.jobs[number]
  if (root === undefined || root.deleted) return { cancelled: false, why: 'not_found' }
  if (!isLive(root)) return { cancelled: false, why: 'finished', status: root.status }
  const cancelled = cancelTree(m, root)
  closeParents(m)
  return { cancelled: true, jobs: numbers(cancelled) }
}

function cancelTree(m: Model, job: Job): Job[] {
  const lock = job.lock === undefined ? undefined : m.locks[job.lock]
  if (job.lock !== undefined && lock?.job === job.job && lock.attempt === undefined) delete m.locks[job.lock]
  job.events.push(job.attempt === undefined ? 'job.cancelled' : `job.cancelled@${job.attempt}`)
  holdSlot(m, job)
  Object.assign(job, { status: 'cancelled', attempt: undefined, leaseUntil: undefined })
  Object.assign(job, { completedAt: m.now, errorCode: 'cancelled' })
  const children = childrenOf(m, job.job).filter((child) => isLive(child))
  return [job, ...children.flatMap((child) => cancelTree(m, child))]
}

function holdSlot(m: Model, { slot: key, attempt, leaseUntil }: Job): void {
  const slot = key === undefined ? undefined : m.slots[key]
  if (slot !== undefined && attempt !== undefined && leaseUntil !== undefined)
    slot.held = { attempt, until: leaseUntil }
}

export function abortPipeline(m: Model, number: number): unknown {
  const ofPipeline = all(m).filter(({ pipeline }) => pipeline === number)
  if (ofPipeline.length === 0) return { aborted: false, why: 'not_found' }
  const cancelled: Job[] = []
  for (const job of ofPipeline) if (isLive(job)) cancelled.push(...cancelTree(m, job))
  closeParents(m)
  if (cancelled.length === 0) return { aborted: false, why: 'nothing_to_abort' }
  return { aborted: true, jobs: numbers(cancelled) }
}

export function recover(m: Model, number: number): unknown {
  const job = m.jobs[number]
  if (job === undefined || job.deleted) return { recovered: false, why: 'not_found' }
  if (job.status !== 'running') return { recovered: false, why: 'not_running', status: job.status }
  if (job.deferred) return { recovered: false, why: 'waiting_for_children' }
  if (m.now - (job.claimedAt ?? 0) < minutes.stale) return { recovered: false, why: 'not_stale' }
  job.events.push(`job.recovered@${job.attempt}`)
  holdSlot(m, job)
  job.due = { minute: m.now, nth: m.asked }
  Object.assign(job, { status: 'pending', attempts: 0, attempt: undefined, leaseUntil: undefined })
  return { recovered: true }
}

export function deleteJob(m: Model, number: number): unknown {
  const job = m.jobs[number]
  if (job === undefined || job.deleted) return { deleted: false, why: 'not_found' }
  if (isLive(job)) return { deleted: false, why: 'unfinished', status: job.status }
  job.deleted = true
  job.events.push('job.deleted')
  return { deleted: true }
}
