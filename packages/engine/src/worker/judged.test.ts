import { expect, test } from 'vitest'
import { madeUpAttempt } from '../../test/attempts.ts'
import type { Attempt } from '../attempt/attempt.ts'
import type { Outcome } from '../attempt/settle.ts'
import { takenOutcome } from './judged.ts'

const failed: Outcome = { kind: 'failed', error: 'forgotten', errorCode: 'Error', permanent: false, steps: [] }

test('a job taken from its handler is given back', () => {
  expect(takenOutcome(madeUpAttempt(), undefined)).toEqual({ kind: 'released', reason: 'shutdown' })
})

test('a job taken from a handler that forgot a rejection has failed', () => {
  const attempt = madeUpAttempt()
  attempt.rejectedBy(failed)
  expect(takenOutcome(attempt, undefined)).toBe(failed)
})

test('a job that its handler has completed by itself stays completed, whatever came later', () => {
  const attempt = madeUpAttempt()
  const completed: Outcome = { kind: 'completed', result: '1', steps: [], chain: [], written: true }
  const done = Object.create(attempt, {
    completed: { value: completed },
    abortReason: { value: 'unhandled_rejection' },
    rejected: { value: failed },
  }) as Attempt
  expect(takenOutcome(done, undefined)).toBe(completed)
})
