import type { Verb } from '../../../src/attempt/fence.ts'
import type { Ending, Numbered } from '../commands.ts'
import { attemptOf, heldBy, minutes, type Job, type Model } from '../model.ts'
import { closeParents, finish, putBack } from './end.ts'
import { add, insert, type Origin } from './submit.ts'
import { letGo, reject } from './write.ts'

type Settled = { settled: true } | { settled: false; why: 'fence_lost' }
type Settlement =
  | { verb: 'complete'; links: readonly Numbered[]; withStep: boolean }
  | { verb: 'fail' | 'retry'; errorCode: string; withStep: boolean }
  | { verb: 'retry_later'; delay: number }
  | { verb: 'release' }

export function failure(m: Model, attempt: number, errorCode: string, withStep = false): Settlement {
  const { ordinal, maxAttempts } = attemptOf(m, attempt)
  const again = errorCode !== 'PermanentError' && ordinal < maxAttempts
  return { verb: again ? 'retry' : 'fail', errorCode, withStep }
}

export function settle(m: Model, attempt: number, settlement: Settlement): Settled {
  m.asked += 1
  const job = heldBy(m, attempt)
  if (job === undefined) return late(m, attempt, settlement.verb)
  end(m, job, attempt, settlement)
  closeParents(m)
  return { settled: true }
}

/** A report that comes twice landed the first time; any other one comes too late, and its attempt lets go. */
export function late(m: Model, attempt: number, verb: Verb): Settled {
  const { job, settled } = attemptOf(m, attempt)
  if (settled.includes(verb) && m.jobs[job] !== undefined) return { settled: true }
  reject(m, attempt)
  letGo(m, attempt)
  return { settled: false, why: 'fence_lost' }
}

function end(m: Model, job: Job, attempt: number, settlement: Settlement): void {
  attemptOf(m, attempt).settled.push(settlement.verb)
  if ('withStep' in settlement && settlement.withStep) {
    job.steps.push({ attempt, step: 'final', success: true, result: { final: attempt } })
  }
  switch (settlement.verb) {
    case 'complete': {
      const { links } = settlement
      if (links.length > 0) job.pipeline ??= job.job
      job.events.push(...links.map(() => `job.chained@${attempt}`))
      finish(m, job, { status: 'completed', attempt, result: { by: attempt } })
      insertChained(m, links, { parent: undefined, pipeline: job.pipeline })
      break
    }
    case 'fail':
      finish(m, job, { status: 'failed', attempt, errorCode: settlement.errorCode })
      break
    case 'retry':
      job.errorCode = settlement.errorCode
      putBack(m, job, Math.min(minutes.maxRetry, minutes.firstRetry * 2 ** (job.attempts - 1)))
      job.events.push(`job.retried@${attempt}`)
      break
    case 'retry_later':
      job.attempts -= 1
      putBack(m, job, settlement.delay)
      // One event for all of them; the start of such an attempt is none of its own.
      job.events = job.events.filter((one) => !one.startsWith('job.retry_later@') && one !== `job.started@${attempt}`)
      job.events.push(`job.retry_later@${attempt}`)
      break
    case 'release':
      job.attempts -= 1
      putBack(m, job)
      job.events.push(`job.released@${attempt}`)
      break
  }
}

/** A chained job that finds its dedup key taken is there already; one that finds its lock taken has failed. */
function insertChained(m: Model, links: readonly Numbered[], origin: Origin): void {
  const answers = insert(m, links, origin)
  for (const [nth, link] of links.entries()) {
    const answer = answers[nth]
    if (answer?.submitted !== false || answer.why !== 'locked') continue
    const job = add(m, link, origin, 'failed')
    Object.assign(job, { errorCode: 'lock_conflict', completedAt: m.now })
    job.events.push('job.failed')
  }
}

type Report = { attempt: number; ending: Ending; withStep: boolean }

/**
 * Reports in one batch. Those without steps are written first, each kind together; then those are told that came too
 * late; then the others are written, one by one.
 */
export function settleAll(m: Model, reports: readonly Report[]): Settled[] {
  const answers = new Map<Report, Settled>()
  const together = (['complete', 'fail', 'retry', 'release'] as const).map((verb) => ({
    verb,
    some: reports.filter((one) => isPlain(one) && settlementOf(m, one).verb === verb),
  }))
  for (const { some } of together) {
    for (const one of some) {
      const job = heldBy(m, one.attempt)
      if (job !== undefined) end(m, job, one.attempt, settlementOf(m, one))
    }
  }
  for (const { verb, some } of together) {
    for (const one of some) answers.set(one, late(m, one.attempt, verb))
  }
  for (const one of reports.filter((report) => !isPlain(report))) {
    answers.set(one, settle(m, one.attempt, settlementOf(m, one)))
  }
  closeParents(m)
  m.asked += 1
  return reports.map((one) => answers.get(one) as Settled)
}

const isPlain = ({ ending, withStep }: Report) => ending === 'release' || !withStep

function settlementOf(m: Model, { attempt, ending, withStep }: Report): Settlement {
  if (ending === 'release') return { verb: 'release' }
  if (ending === 'fail') return failure(m, attempt, 'Error', withStep)
  return { verb: 'complete', links: [], withStep }
}
