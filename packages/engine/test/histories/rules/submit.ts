import type { Numbered } from '../commands.ts'
import { all, isLive, type Job, type Model } from '../model.ts'

export type Origin = Pick<Job, 'parent' | 'pipeline'>
type Submitted =
  | { submitted: true; job: number }
  | { submitted: false; why: 'locked'; lock: string; holder: { job: number; attempt: number | undefined } }
  | { submitted: false; why: 'duplicate'; dedup: string; holder: number }
  | { submitted: false; why: 'drained' }

const outside: Origin = { parent: undefined, pipeline: undefined }

export function submit(m: Model, wanted: readonly Numbered[], inside: 'commit' | 'rollback' | undefined): Submitted[] {
  if (m.drain !== 'off') return wanted.map(() => ({ submitted: false, why: 'drained' }))
  if (inside === 'rollback') return insert(structuredClone(m), wanted, outside)
  return insert(m, wanted, outside)
}

/** Of several jobs that want one key, the first gets it; what is refused keeps no lock. */
export function insert(m: Model, wanted: readonly Numbered[], origin: Origin): Submitted[] {
  m.asked += 1
  const lockedBy = new Map<string, number>()
  for (const { job, lock } of wanted) {
    if (lock === undefined || lockedBy.has(lock) || !isFree(m, lock)) continue
    lockedBy.set(lock, job)
    m.locks[lock] = { job, attempt: undefined, until: undefined }
  }
  const hasLock = ({ job, lock }: Numbered) => lock === undefined || lockedBy.get(lock) === job
  const refused: Numbered[] = []
  for (const one of wanted) {
    if (hasLock(one) && duplicateOf(m, one) === undefined) add(m, one, origin, 'pending')
    else refused.push(one)
  }
  for (const one of refused) if (one.lock !== undefined && hasLock(one)) delete m.locks[one.lock]
  return wanted.map((one) => {
    if (!refused.includes(one)) return { submitted: true, job: one.job }
    const holder = one.lock === undefined || hasLock(one) ? undefined : m.locks[one.lock]
    if (one.lock !== undefined && holder !== undefined) {
      return { submitted: false, why: 'locked', lock: one.lock, holder: { job: holder.job, attempt: holder.attempt } }
    }
    const duplicate = duplicateOf(m, one)
    if (hasLock(one) && one.dedup !== undefined && duplicate !== undefined) {
      return { submitted: false, why: 'duplicate', dedup: one.dedup, holder: duplicate.job }
    }
    // What was in the way of this one was itself refused.
    return insert(m, [one], origin)[0] as Submitted
  })
}

/** A lock is free when nobody has it, or its job is over and the attempt that still had it has fallen silent. */
function isFree(m: Model, key: string): boolean {
  const lock = m.locks[key]
  return lock === undefined || (!isLive(m.jobs[lock.job]) && lock.until !== undefined && lock.until <= m.now)
}

function duplicateOf(m: Model, { dedup }: Numbered): Job | undefined {
  return dedup === undefined ? undefined : all(m).find((job) => isLive(job) && job.dedup === dedup)
}

export function add(m: Model, wanted: Numbered, origin: Origin, status: 'pending' | 'failed'): Job {
  const job: Job = {
    ...wanted,
    ...origin,
    status,
    due: { minute: m.now + wanted.delay, nth: m.asked },
    attempts: 0,
    attempt: undefined,
    worker: undefined,
    claimedAt: undefined,
    leaseUntil: undefined,
    family: undefined,
    deferred: false,
    progress: undefined,
    result: null,
    errorCode: undefined,
    completedAt: undefined,
    deleted: false,
    steps: [],
    events: ['job.submitted'],
  }
  m.jobs[job.job] = job
  m.accepted.push(job.job)
  return job
}
