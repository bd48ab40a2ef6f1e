import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Pace } from './pace.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** What is held ready after jobs ended at this rate. */
function aheadAfter(jobs: number, ms: number): number {
  const pace = new Pace(1_000)
  for (let n = 0; n < jobs; n += 1) pace.ended()
  vi.advanceTimersByTime(ms)
  return pace.ahead
}

test('as many are held ready as end in a fifth of a second', () => {
  expect(aheadAfter(400, 400)).toBe(200)
})

test('slow jobs are never claimed ahead of need', () => {
  expect(aheadAfter(0, 400)).toBe(0)
  expect(aheadAfter(1, 400)).toBe(0)
})

test('no more than a batch is held ready', () => {
  expect(aheadAfter(400_000, 400)).toBe(1_000)
})

test('jobs that have become slow are no longer claimed ahead', () => {
  const pace = new Pace(1_000)
  for (let n = 0; n < 400; n += 1) pace.ended()
  vi.advanceTimersByTime(400)
  expect(pace.ahead).toBe(200)
  vi.advanceTimersByTime(400)
  expect(pace.ahead).toBe(0)
})
