import type { FailWhen } from '../../../src/lifecycle/defer.ts'
import type { Step } from '../commands.ts'
import { attemptOf, heldBy, type Model } from '../model.ts'
import { free } from './end.ts'
import { failure, late, settle } from './settle.ts'
import { insert, type Origin } from './submit.ts'

export function defer(m: Model, step: Extract<Step, { do: 'defer' }>): unknown {
  const { attempt, children } = step
  if (attemptOf(m, attempt).links.length > 0) return { threw: 'PermanentError' }
  if (children.length === 0) return settle(m, attempt, { verb: 'complete', links: [], withStep: false })
  const job = heldBy(m, attempt)
  if (job === undefined) return late(m, attempt, 'defer')
  attemptOf(m, attempt).settled.push('defer')
  const origin: Origin = { parent: job.job, pipeline: job.pipeline }
  const tried = insert(structuredClone(m), children, origin)
  if (tried.some(({ submitted }) => !submitted)) return settle(m, attempt, failure(m, attempt, 'child_conflict'))
  free(m, job, 'keep')
  Object.assign(job, { deferred: true, attempt: undefined, leaseUntil: undefined, errorCode: undefined })
  job.family = { total: children.length, failAt: failAt(step.failWhen, children.length) }
  job.result = { by: attempt }
  job.events.push(`job.deferred@${attempt}`)
  insert(m, children, origin)
  return { settled: true }
}

function failAt(failWhen: FailWhen, total: number): number {
  if (failWhen === 'any') return 1
  if (failWhen === 'never') return Infinity
  return failWhen === 'all' ? total : Math.floor(failWhen.ratio * total) + 1
}
