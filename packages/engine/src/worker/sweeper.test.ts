import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { silentLogger } from '../logger.ts'
import { Sweeper } from './sweeper.ts'

const sweepMs = 1_000
let sweptAt = -Infinity
let calls = 0
let sweeps = 0

/** What Postgres answers: nothing when a sweep has begun within that time. */
async function sweep(unlessWithinMs: number): Promise<unknown> {
  calls += 1
  if (Date.now() - sweptAt < unlessWithinMs) return undefined
  sweptAt = Date.now()
  sweeps += 1
  return {}
}

const sweepers: Sweeper[] = []
function start(count: number): void {
  for (let nth = 0; nth < count; nth += 1) {
    const sweeper = new Sweeper(sweep, sweepMs, silentLogger)
    sweeper.start()
    sweepers.push(sweeper)
  }
}

beforeEach(() => {
  vi.useFakeTimers()
  sweptAt = -Infinity
  calls = 0
  sweeps = 0
})
afterEach(() => {
  for (const sweeper of sweepers.splice(0)) sweeper.stop()
  vi.useRealTimers()
})

test('one that is alone sweeps at once and in every interval', async () => {
  start(1)
  await vi.advanceTimersByTimeAsync(20_500)
  expect(sweeps).toBe(21)
})

test('of twenty, one sweeps, and the others seldom look', async () => {
  start(20)
  await vi.advanceTimersByTimeAsync(60_000) // until they have settled down
  calls = 0
  sweeps = 0
  await vi.advanceTimersByTimeAsync(60_000)
  expect(sweeps).toBeGreaterThanOrEqual(55)
  expect(sweeps).toBeLessThanOrEqual(70)
  expect(calls).toBeLessThan(60 + (19 * 60) / 5)
})

test.each([0, 1])('of two, whichever is gone, the other sweeps', async (nth) => {
  start(2)
  await vi.advanceTimersByTimeAsync(30_000)
  sweepers[nth]?.stop()
  sweeps = 0
  await vi.advanceTimersByTimeAsync(60_000)
  expect(sweeps).toBeGreaterThanOrEqual(38)
})

test('one that hears of passed leases sweeps at once', async () => {
  start(2)
  await vi.advanceTimersByTimeAsync(30_100)
  sweeps = 0
  await Promise.all(sweepers.map((sweeper) => sweeper.now()))
  expect(sweeps).toBe(2)
})
