import { isDeepStrictEqual } from 'node:util'
import type { Numbered, Step } from './commands.ts'
import type { JobRow, Snapshot } from './snapshot.ts'
import { checkStory } from './story.ts'
import type { World } from './world.ts'

/*
 * The invariants of design.md, section 9, by name, read from the rows and from what workers were told. Nothing here
 * knows the model: what both say is said twice.
 */

/** One step, with everything as it was before and is after it. */
export interface Taken {
  step: Step
  answer: unknown
  before: Snapshot
  after: Snapshot
}

/** A worker's own view of an attempt: at work until it lets go, or until the lease it knows of is over. */
interface AtWork {
  lock: string | null
  slot: string | null
  lease: number
  until: number
}

/** Watches one history. */
export class Invariants {
  readonly #world: World
  /** Every job that was ever seen, and how it ended. */
  readonly #known = new Set<string>()
  readonly #ends = new Map<string, string>()
  readonly #atWork = new Map<number, AtWork>()
  readonly #jobOf = new Map<number, string>()
  /** Attempts that have reported, or have been told that they are lost. */
  readonly #knows = new Set<number>()
  #now = 0

  constructor(world: World) {
    this.#world = world
  }

  check(taken: Taken): void {
    const { after } = taken
    this.#j1EndsOnce(taken)
    this.#j2StaleChangesNothing(taken)
    this.#j2StaleIsTold(taken)
    this.#j3NothingIsLost(taken)
    this.#j4OneHolder(after)
    this.#j4NobodyElseAtWork(taken)
    j5OnePerSlot(after)
    j6ChildrenCountOnce(after)
    j9AttemptsAreLimited(after)
    for (const row of rowsOf(after))
      checkStory(
        row,
        after.events.filter(({ job_id: jobId }) => jobId === row.job_id),
      )
  }

  /** After everything was worked off: every job has ended, and nothing is held any more. */
  checkEnd({ live, locks, slots, clock }: Snapshot): void {
    must(live.length === 0, 'J3', `these never ended: ${live.map(({ payload }) => payload.job).join(', ')}`)
    must(locks.length === 0, 'J4', `nobody is left, but ${locks.map(({ lock_key: key }) => key).join(', ')} is locked`)
    const held = slots.filter(({ held_until: until }) => until !== null && until > clock)
    must(held.length === 0, 'J5', `nobody is left, but ${held.map(({ slot_key: key }) => key).join(', ')} is held`)
  }

  /** Also J7: what has ended, cancelled or otherwise, stays as it was. */
  #j1EndsOnce({ step, after }: Taken): void {
    const still = new Map(after.finished.map((row) => [row.job_id, JSON.stringify({ ...row, deleted_at: null })]))
    for (const [jobId, end] of this.#ends) {
      const now = still.get(jobId)
      if (now === undefined && step.do === 'retain') this.#ends.delete(jobId)
      else must(now === end, end.includes('"cancelled"') ? 'J7' : 'J1', `a job that had ended changed: ${end} → ${now}`)
    }
    for (const [jobId, end] of still) this.#ends.set(jobId, end)
  }

  #j2StaleChangesNothing({ step, before, after }: Taken): void {
    const attempts = actors(step)
    const ids = new Set(attempts.map((attempt) => this.#world.attemptId(attempt)))
    if (attempts.length === 0 || before.live.some(({ attempt_id: id }) => id !== null && ids.has(id))) return
    const old = new Set(before.events.map(({ id }) => id))
    // What it still has of a job that was taken from it, it may renew or give up. Nothing else.
    const mayTouch = step.do === 'renew' || step.do === 'let_go' || isSettlement(step)
    const isMine = ({ attempt_id: by }: { attempt_id: string | null }) => by !== null && ids.has(by)
    const locks = new Set(before.locks.filter((row) => mayTouch && isMine(row)).map((row) => row.lock_key))
    const slots = new Set(before.slots.filter((row) => mayTouch && isMine(row)).map((row) => row.slot_key))
    const rest = (state: Snapshot): Snapshot => ({
      ...state,
      clock: '',
      locks: state.locks.filter((row) => !locks.has(row.lock_key)),
      slots: state.slots.filter((row) => !slots.has(row.slot_key)),
      events: state.events.filter((row) => old.has(row.id) || row.event !== 'job.fence_rejected' || !isMine(row)),
    })
    const [then, now] = [rest(before), rest(after)]
    must(isDeepStrictEqual(now, then), 'J2', `a stale ${step.do} changed something: ${difference(then, now)}`)
  }

  /** A worker that does not know yet that it lost its attempt learns it from a renewal, and the history shows it. */
  #j2StaleIsTold({ step, answer, after }: Taken): void {
    for (const attempt of step.do === 'renew' ? (answer as { lost: number[] }).lost : []) {
      const id = this.#world.attemptId(attempt)
      const told = after.events.filter((row) => row.attempt_id === id && row.fields?.verb === 'renew').length
      const isThere = rowsOf(after).some(({ job_id: jobId }) => jobId === this.#jobOf.get(attempt))
      must(told <= 1, 'J2', `attempt ${attempt} was told ${told} times that it is lost`)
      must(told === 1 || this.#knows.has(attempt) || !isThere, 'J2', `attempt ${attempt} was lost without a trace`)
      this.#knows.add(attempt)
    }
    if (isSettlement(step) || isLost(answer)) for (const attempt of actors(step)) this.#knows.add(attempt)
  }

  #j3NothingIsLost({ step, answer, before, after }: Taken): void {
    const live = new Set(after.live.map(({ job_id: jobId }) => jobId))
    const finished = new Set(after.finished.map(({ job_id: jobId }) => jobId))
    for (const jobId of this.#known) {
      must(!(live.has(jobId) && finished.has(jobId)), 'J3', `job ${jobId} is both live and finished`)
      if (live.has(jobId) || finished.has(jobId)) continue
      const wasFinished = before.finished.some((row) => row.job_id === jobId)
      must(step.do === 'retain' && wasFinished, 'J3', `job ${jobId} is gone`)
      this.#known.delete(jobId)
    }
    for (const jobId of [...live, ...finished]) this.#known.add(jobId)
    if (step.do !== 'submit') return
    const isThere = ({ job }: Numbered) => rowsOf(after).some(({ payload }) => payload.job === job)
    for (const [nth, { submitted }] of (answer as { submitted: boolean }[]).entries()) {
      const expected = submitted && step.inside !== 'rollback'
      must(isThere(step.wanted[nth] as Numbered) === expected, 'J3', `accepted: ${expected}, there: ${!expected}`)
    }
  }

  #j4OneHolder({ live, locks }: Snapshot): void {
    for (const { payload, job_id: jobId, ...row } of live) {
      if (row.lock_key === null) continue
      const lock = locks.find(({ lock_key: key }) => key === row.lock_key)
      must(lock?.job_id === jobId, 'J4', `job ${payload.job} is live without its lock ${row.lock_key}`)
      if (row.status !== 'running') continue
      const isHeld = lock?.attempt_id === row.attempt_id && lock.expires_at === row.lease_until
      must(isHeld, 'J4', `the lock ${row.lock_key} is not held by the attempt that runs job ${payload.job}`)
    }
  }

  /** Nobody is let in where another attempt may still be at work, as far as that attempt's own worker knows. */
  #j4NobodyElseAtWork({ step, answer, after }: Taken): void {
    if (step.do === 'advance') this.#now += step.minutes
    if (step.do === 'let_go' && !after.live.some((row) => row.attempt_id === this.#world.attemptId(step.attempt))) {
      this.#atWork.delete(step.attempt)
    }
    if (isSettlement(step) && !isThrown(answer)) for (const attempt of actors(step)) this.#atWork.delete(attempt)
    if (step.do === 'renew') {
      const { lost } = answer as { lost: number[] }
      for (const attempt of step.attempts) {
        const work = this.#atWork.get(attempt)
        if (work !== undefined && !lost.includes(attempt)) work.until = this.#now + work.lease
      }
    }
    for (const attempt of claimedBy(step, answer)) this.#startWork(attempt, step as { lease: number }, after)
  }

  #startWork(attempt: number, { lease }: { lease: number }, after: Snapshot): void {
    const row = after.live.find(({ attempt_id: id }) => id === this.#world.attemptId(attempt))
    if (row === undefined) throw new Error(`J4: attempt ${attempt} was claimed, and no job is running under it`)
    const { lock_key: lock, slot_key: slot } = row
    this.#jobOf.set(attempt, row.job_id)
    for (const [other, work] of this.#atWork) {
      const shared = (lock !== null && work.lock === lock) || (slot !== null && work.slot === slot)
      must(!shared || work.until <= this.#now, 'J4', `attempt ${attempt} was let in where ${other} may be at work`)
    }
    this.#atWork.set(attempt, { lock, slot, lease, until: this.#now + lease })
  }
}

const rowsOf = ({ live, finished }: Snapshot): JobRow[] => [...live, ...finished]

function j5OnePerSlot(after: Snapshot): void {
  const running = after.live.filter(({ status, slot_key: slot }) => status === 'running' && slot !== null)
  const isCurrent = new Set(after.seen.filter((row) => row.is_current).map(({ job_id: jobId }) => jobId))
  for (const { slot_key: slot, job_id: jobId } of running) {
    must(running.filter((row) => row.slot_key === slot).length === 1, 'J5', `two jobs of ${slot} are running`)
    must(isCurrent.has(jobId), 'J5', `the running job of ${slot} is not the current one`)
  }
  const slots = rowsOf(after).flatMap(({ job_id: jobId, slot_key: slot }) => (isCurrent.has(jobId) ? [slot] : []))
  must(new Set(slots).size === slots.length, 'J5', `two current jobs in one of ${slots.join(', ')}`)
}

function j6ChildrenCountOnce(after: Snapshot): void {
  for (const parent of rowsOf(after)) {
    const total = parent.children_total
    if (total === null) continue
    const isChild = (row: JobRow) => row.parent_job_id === parent.job_id
    const live = after.live.filter(isChild).length
    const ended = after.finished.filter(isChild).length
    const seen = after.seen.find((row) => row.job_id === parent.job_id)
    const counted = (seen?.children_completed ?? 0) + (seen?.children_failed ?? 0)
    const what = `${total} children of job ${parent.payload.job}: ${live} live, ${ended} ended, ${counted} counted`
    must(live + ended === total && counted === ended, 'J6', what)
    // Nothing else goes on in a history, so a parent closes together with its last child.
    must((live === 0) === (parent.status !== 'running'), 'J6', `${what}, and the parent is ${parent.status}`)
  }
}

/** Attempts are what was started since the last recovery, less what was given back. */
function j9AttemptsAreLimited(after: Snapshot): void {
  for (const { job_id: jobId, payload, attempts, max_attempts: max } of rowsOf(after)) {
    let spent = 0
    for (const { event } of after.events.filter((one) => one.job_id === jobId)) {
      if (event === 'job.started') spent += 1
      if (event === 'job.released') spent -= 1
      if (event === 'job.recovered') spent = 0
    }
    must(
      attempts === spent && spent <= max,
      'J9',
      `job ${payload.job}: ${attempts} attempts, ${spent} spent, of ${max}`,
    )
  }
}

/** The attempts in whose name a step is taken. */
function actors(step: Step): number[] {
  if (step.do === 'renew') return step.attempts
  if (step.do === 'settle_all') return step.endings.map(({ attempt }) => attempt)
  return 'attempt' in step ? [step.attempt] : []
}

const settlements: readonly string[] = ['complete', 'fail', 'retry_later', 'release', 'defer', 'settle_all']
const isSettlement = (step: Step) => settlements.includes(step.do)
const isLost = (answer: unknown) => isThrown(answer) || (answer as { written?: boolean } | null)?.written === false
const isThrown = (answer: unknown) => typeof answer === 'object' && answer !== null && 'threw' in answer

function claimedBy(step: Step, answer: unknown): number[] {
  if (step.do === 'claim') return (answer as { attempt: number }[]).map(({ attempt }) => attempt)
  if (step.do !== 'claim_job') return []
  const one = answer as { claimed: true; attempt: number } | { claimed: false }
  return one.claimed ? [one.attempt] : []
}

function must(holds: boolean, name: string, otherwise: string): void {
  if (!holds) throw new Error(`${name} does not hold: ${otherwise}`)
}

function difference(then: Snapshot, now: Snapshot): string {
  const parts = (Object.keys(then) as (keyof Snapshot)[]).filter((part) => !isDeepStrictEqual(then[part], now[part]))
  return parts.map((part) => `${part} ${JSON.stringify(then[part])} → ${JSON.stringify(now[part])}`).join('; ')
}
