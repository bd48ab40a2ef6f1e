import { attemptOf, heldBy, isLive, type Job, type Model } from '../model.ts'

type Written = { written: true } | { written: false; why: 'fence_lost' }

export function write(m: Model, attempt: number, change: (job: Job) => void): Written {
  const job = heldBy(m, attempt)
  if (job === undefined) {
    reject(m, attempt)
    return { written: false, why: 'fence_lost' }
  }
  change(job)
  return { written: true }
}

export function reject(m: Model, attempt: number): void {
  m.jobs[attemptOf(m, attempt).job]?.events.push(`job.fence_rejected@${attempt}`)
}

export const orThrow = (written: Written, value: unknown) => (written.written ? value : { threw: 'fence_lost' })

/** A step that some attempt has finished is not run again, and its result is anybody's to read. */
export function runStep(m: Model, attempt: number, step: string): unknown {
  const done = m.jobs[attemptOf(m, attempt).job]?.steps.find((one) => one.step === step && one.success)
  if (done !== undefined) return done.result
  const result = { ran: attempt }
  return orThrow(
    write(m, attempt, (job) => job.steps.push({ attempt, step, success: true, result })),
    result,
  )
}

/** Gives up what an attempt still has of a job that was taken from it. An attempt that holds its fence keeps all. */
export function letGo(m: Model, attempt: number): void {
  if (heldBy(m, attempt) !== undefined) return
  for (const [key, lock] of Object.entries(m.locks)) {
    if (lock.attempt !== attempt) continue
    if (isLive(m.jobs[lock.job])) Object.assign(lock, { attempt: undefined, until: undefined })
    else delete m.locks[key]
  }
  for (const slot of Object.values(m.slots)) if (slot.held?.attempt === attempt) slot.held = undefined
}
