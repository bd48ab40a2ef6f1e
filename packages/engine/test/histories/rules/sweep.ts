import { all, isLive, minutes, numbers, type Job, type Model } from '../model.ts'
import { closeParents, finish, putBack } from './end.ts'

export function sweep(m: Model): { expired: number[]; failed: number[]; closed: number[]; freed: string[] } {
  const silent = all(m).filter(({ leaseUntil }) => leaseUntil !== undefined && leaseUntil <= m.now)
  const expired = silent.filter(({ attempts, maxAttempts }) => attempts < maxAttempts)
  const failed = silent.filter(({ attempts, maxAttempts }) => attempts >= maxAttempts)
  for (const job of expired) {
    job.events.push(`job.expired@${job.attempt}`)
    putBack(m, job, 0) // all at one time, so in order of submission
  }
  for (const job of failed) {
    job.events.push(`job.expired@${job.attempt}`)
    finish(m, job, { status: 'failed', errorCode: 'lease_expired', ...about(job) })
  }
  const closed = closeParents(m)
  const freed = Object.keys(m.locks).filter((key) => {
    const lock = m.locks[key]
    return lock !== undefined && !isLive(m.jobs[lock.job]) && (lock.until === undefined || lock.until <= m.now)
  })
  for (const key of freed) delete m.locks[key]
  return { expired: numbers(expired), failed: numbers(failed), closed: numbers(closed), freed: freed.sort() }
}

const about = ({ attempt }: Job) => (attempt === undefined ? {} : { about: attempt })

/** Old jobs go, each with the slot that it is current in, except in a slot still held and children of a parent still there. */
export function retain(m: Model): number {
  const isOld = ({ completedAt }: Job) => completedAt !== undefined && m.now - completedAt >= minutes.retention
  const isCurrent = ({ job, slot }: Job) => slot !== undefined && m.slots[slot]?.job === job
  const isHeld = (job: Job) => isCurrent(job) && (m.slots[job.slot as string]?.held?.until ?? m.now) > m.now
  const old = all(m).filter(
    (job) => isOld(job) && !isHeld(job) && (job.parent === undefined || m.jobs[job.parent] === undefined),
  )
  for (const job of old) {
    if (isCurrent(job)) delete m.slots[job.slot as string]
    delete m.jobs[job.job]
  }
  return old.length === 0 ? 0 : old.length + retain(m)
}
