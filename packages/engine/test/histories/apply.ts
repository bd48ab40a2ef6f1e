import type { Step } from './commands.ts'
import { attemptOf, type Model } from './model.ts'
import { claim, claimJob, renew } from './rules/claim.ts'
import { defer } from './rules/defer.ts'
import { abortPipeline, cancel, deleteJob, recover } from './rules/operate.ts'
import { failure, settle, settleAll } from './rules/settle.ts'
import { submit } from './rules/submit.ts'
import { retain, sweep } from './rules/sweep.ts'
import { letGo, orThrow, runStep, write } from './rules/write.ts'

/** The answer that a step must get, and the state after it. */
export function apply(model: Model, step: Step): { answer: unknown; next: Model } {
  const next = structuredClone(model)
  next.asked += 1
  return { answer: carryOut(next, step), next }
}

function carryOut(m: Model, step: Step): unknown {
  switch (step.do) {
    case 'submit':
      return submit(m, step.wanted, step.inside)
    case 'claim':
      return claim(m, step)
    case 'claim_job':
      return claimJob(m, step)
    case 'renew':
      return renew(m, step.attempts)
    case 'advance':
      m.now += step.minutes
      return undefined
    case 'complete':
      return settle(m, step.attempt, { verb: 'complete', links: attemptOf(m, step.attempt).links, withStep: false })
    case 'fail':
      return settle(m, step.attempt, failure(m, step.attempt, step.permanent ? 'PermanentError' : 'Error'))
    case 'retry_later':
      return settle(m, step.attempt, { verb: 'retry_later', delay: step.delay })
    case 'release':
      return settle(m, step.attempt, { verb: 'release' })
    case 'defer':
      return defer(m, step)
    case 'settle_all':
      return settleAll(m, step.endings)
    case 'let_go':
      letGo(m, step.attempt)
      return undefined
    case 'chain':
      attemptOf(m, step.attempt).links.push(step.wanted)
      return undefined
    case 'emit':
      return write(m, step.attempt, (job) => {
        job.progress = step.progress ?? job.progress
        job.events.push(`work.noted@${step.attempt}`)
      })
    case 'progress':
      return write(m, step.attempt, (job) => {
        job.progress = step.current
      })
    case 'record_step':
      return write(m, step.attempt, (job) => {
        job.steps.push({ attempt: step.attempt, step: step.step, success: step.success, result: null })
      })
    case 'run_step':
      return runStep(m, step.attempt, step.step)
    case 'transaction':
      return orThrow(
        write(m, step.attempt, () => m.ledger.push(step.attempt)),
        null,
      )
    case 'cancel':
      return cancel(m, step.job)
    case 'recover':
      return recover(m, step.job)
    case 'delete':
      return deleteJob(m, step.job)
    case 'abort_pipeline':
      return abortPipeline(m, step.job)
    case 'sweep':
      return sweep(m)
    case 'retain':
      return retain(m)
    case 'drain':
      m.drain = step.level
      return undefined
  }
}
