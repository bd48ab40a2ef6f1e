import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError, RetryLater } from '../../src/errors.ts'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Engine } from '../../src/engine.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { completing } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
const gate = new Gate()
let slow: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
  slow = await bed.open({}, { pausePoint: gate.pausePoint })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const endsOf = async (jobId: string) =>
  (await bed.engine.events(jobId))
    .map(({ event }) => event)
    .filter((event) => ['job.completed', 'job.failed', 'job.cancelled'].includes(event))

describe('a completion that comes first', () => {
  test('wins, and the cancel that waited for it is told so', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
    const held = await bed.hold(completing(await claimOne(bed.engine)))
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ cancelled: false, why: 'finished', status: 'completed' })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: { by: 'another' } })
    expect(await endsOf(jobId)).toEqual(['job.completed'])
  })

  test('and rolls back: the job is cancelled', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const held = await bed.hold(completing(await claimOne(bed.engine)))
    const late = other.cancel(jobId)
    await bed.blocked()
    await held.rollback()
    expect(await late).toEqual({ cancelled: true, jobIds: [jobId] })
    expect(await endsOf(jobId)).toEqual(['job.cancelled'])
  })
})

describe('a cancel that comes first', () => {
  const reports: [string, (attempt: Attempt) => Promise<unknown>][] = [
    ['complete', (attempt) => other.complete(attempt, { late: true })],
    [
      'complete and chain',
      (attempt) => {
        attempt.chain(work, { chained: true })
        return other.complete(attempt)
      },
    ],
    ['fail', (attempt) => other.fail(attempt, new PermanentError('no'))],
    ['retry', (attempt) => other.fail(attempt, new Error('no'))],
    ['retry later', (attempt) => other.fail(attempt, new RetryLater('busy', 5))],
    ['release', (attempt) => other.release(attempt, 'going away')],
    ['defer', (attempt) => other.complete(attempt, defer([child(work, {})]))],
  ]
  test.each(reports)(
    'wins: a %s waits for it, changes nothing, and is told that its fence is lost',
    async (_, report) => {
      const jobId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
      const attempt = await claimOne(other)
      const stop = gate.stopAt('cancel.commit')
      const cancelled = slow.cancel(jobId)
      await stop.reached
      const late = report(attempt)
      await bed.blocked()
      stop.go()
      expect(await cancelled).toEqual({ cancelled: true, jobIds: [jobId] })
      expect(await late).toEqual({ settled: false, why: 'fence_lost' })
      expect(await bed.engine.get(jobId)).toMatchObject({
        status: 'cancelled',
        error: 'Cancelled by user',
        result: null,
        attemptId: undefined,
      })
      expect(await endsOf(jobId)).toEqual(['job.cancelled'])
      // The report was the worker's last word: it has let go, and there is nothing else of it.
      expect(await tableRows(bed)).toMatchObject({
        live_jobs: [],
        finished_jobs: [{}],
        resource_locks: [],
        slots: [{ attempt_id: null, held_until: null }],
      })
    },
  )
})

test('of completions and cancels that run at once, each job is ended by one of them', async () => {
  const count = 30
  await bed.engine.submitMany(
    work,
    Array.from({ length: count }, () => ({ payload: {} })),
  )
  const attempts = await other.claim({ limit: count })
  const answers = await Promise.all(
    attempts.map(async (attempt) => {
      const [settled, cancelled] = await Promise.all([other.complete(attempt), slow.cancel(attempt.jobId)])
      return { jobId: attempt.jobId, won: settled.settled ? 'completed' : 'cancelled', both: cancelled.cancelled }
    }),
  )
  for (const { jobId, won, both } of answers) {
    expect(both).toBe(won === 'cancelled')
    expect(await bed.engine.get(jobId)).toMatchObject({ status: won })
    expect(await endsOf(jobId)).toEqual([`job.${won}`])
  }
})
