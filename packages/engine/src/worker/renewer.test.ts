import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { madeUpAttempt } from '../../test/attempts.ts'
import type { Attempt } from '../attempt/attempt.ts'
import { silentLogger } from '../logger.ts'
import { Renewer } from './renewer.ts'

// A clock that tests move, also performance.now().
beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An attempt that was claimed just now, with so long a lease. */
function held(renewer: Renewer, leaseMs: number): Attempt {
  const attempt = madeUpAttempt(leaseMs)
  renewer.hold(attempt, performance.now())
  return attempt
}

test('a short lease is renewed in its time, also beside a long one that was there before', async () => {
  const renewed = new Set<Attempt>()
  const renewer = new Renewer(async (attempts) => attempts.forEach((attempt) => renewed.add(attempt)), silentLogger)
  held(renewer, 600_000)
  const short = held(renewer, 300)
  await vi.advanceTimersByTimeAsync(200)
  expect(renewed).toContain(short)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(short.abortReason).toBeUndefined()
})

test('a renewal that failed is repeated soon, while the lease lasts', async () => {
  let tries = 0
  const renewer = new Renewer(async () => {
    tries += 1
    if (tries < 4) throw new Error('away')
  }, silentLogger)
  const attempt = held(renewer, 30_000)
  await vi.advanceTimersByTimeAsync(29_000)
  expect(tries).toBeGreaterThanOrEqual(4)
  expect(attempt.abortReason).toBeUndefined()
})

test.each([
  ['refused', () => Promise.reject(new Error('away'))],
  ['not answered', () => new Promise<never>(() => {})],
])('a handler is told to stop before its lease can lapse when renewals are %s', async (_how, renew) => {
  const renewer = new Renewer(renew, silentLogger)
  const attempt = held(renewer, 30_000)
  await vi.advanceTimersByTimeAsync(24_000)
  expect(attempt.abortReason).toBeUndefined()
  await vi.advanceTimersByTimeAsync(4_000)
  expect(attempt.abortReason).toBe('database_unreachable')
  expect(renewer.endangered).toBe(true)
})

test('nothing is renewed after the end', async () => {
  let renewals = 0
  const renewer = new Renewer(async () => void (renewals += 1), silentLogger)
  renewer.stop()
  held(renewer, 300)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(renewals).toBe(0)
})
