import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Attempt } from '../attempt/attempt.ts'
import { silentLogger } from '../logger.ts'
import { Fetcher, type FetcherPorts } from './fetcher.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A fetcher over queues that are only numbers: how many due jobs each has, quickly claimed or not. */
function fetcherOf(
  queues: Record<string, { plain?: number; other?: number }>,
  ports: Partial<FetcherPorts> = {},
): { fetcher: Fetcher; claims: string[]; surveys: () => number } {
  const claims: string[] = []
  let surveys = 0
  const take = (queue: string, kinds: readonly ('plain' | 'other')[], limit: number) => {
    const taken: Attempt[] = []
    for (const kind of kinds) {
      const count = Math.min(limit - taken.length, queues[queue]?.[kind] ?? 0)
      if (count > 0) queues[queue] = { ...queues[queue], [kind]: (queues[queue]?.[kind] ?? 0) - count }
      taken.push(...Array.from({ length: count }, () => ({}) as Attempt))
    }
    return taken
  }
  const fetcher = new Fetcher(
    {
      claims: {
        plain: async ({ queue = '', limit = 1 }) => {
          claims.push(queue)
          const attempts = take(queue, ['plain'], limit)
          const last = attempts.length === limit ? { priority: 0, runAfter: 0, jobId: '' } : undefined
          return { attempts, last }
        },
        ofQueue: async ({ queue = '', limit = 1 }) => {
          claims.push(`${queue}, any`)
          return take(queue, ['plain', 'other'], limit)
        },
      },
      room: () => 5,
      accept: () => {},
      full: () => {},
      survey: async () => {
        surveys += 1
        const due = Object.keys(queues).filter((name) => (queues[name]?.plain ?? 0) + (queues[name]?.other ?? 0) > 0)
        return { due, nextMs: undefined, expired: false, scheduled: false }
      },
      ...ports,
    },
    { operations: [], pollMs: 1_000 },
    silentLogger,
  )
  return { fetcher, claims, surveys: () => surveys }
}

test('a worker that had no room looks again, though nobody says that it has some', async () => {
  let room = 0
  const { fetcher, claims } = fetcherOf({ default: { plain: 1 } }, { room: () => room })
  fetcher.start()
  await vi.advanceTimersByTimeAsync(3_000)
  expect(claims).toEqual([])
  room = 5 // its leases are no longer in danger, say
  await vi.advanceTimersByTimeAsync(1_000)
  expect(claims.length).toBeGreaterThan(0)
  await fetcher.stop()
})

test('a queue that is announced all the time does not keep the others from being looked at', async () => {
  const queues: Record<string, { plain?: number }> = { busy: {}, other: {} }
  const { fetcher, claims } = fetcherOf(queues)
  fetcher.start()
  await vi.advanceTimersByTimeAsync(100)
  queues['other'] = { plain: 3 } // and nobody says so
  for (let ms = 0; ms < 1_000; ms += 10) {
    queues['busy'] = { plain: 1 }
    fetcher.look(['busy'])
    await vi.advanceTimersByTimeAsync(10)
  }
  expect(claims.filter((queue) => queue.startsWith('other')).length).toBeGreaterThan(0)
  expect(queues['other']).toEqual({ plain: 0 })
  await fetcher.stop()
})

test('a queue that always has more does not keep the others from being looked at', async () => {
  const queues: Record<string, { plain?: number }> = { busy: { plain: 1_000_000 }, other: {} }
  let accepted = 0
  const accept = () => {
    accepted += 1
    if (accepted === 100) queues['other'] = { plain: 3 } // and nobody says so
    vi.advanceTimersByTime(10)
    if (accepted === 300) void fetcher.stop()
  }
  const { fetcher } = fetcherOf(queues, { accept })
  fetcher.start()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(accepted).toBeGreaterThanOrEqual(300)
  expect(queues['other']).toEqual({ plain: 0 })
})

test('a claim that brings less than was asked is not taken for the end of the queue', async () => {
  const queues = { default: { plain: 2, other: 7 } }
  const { fetcher } = fetcherOf(queues)
  fetcher.look(['default'])
  await vi.advanceTimersByTimeAsync(10)
  expect(queues).toEqual({ default: { plain: 0, other: 0 } })
  await fetcher.stop()
})

test('an idle worker asks one question per poll, however many queues it has', async () => {
  const queues = Object.fromEntries(Array.from({ length: 50 }, (_, nth) => [`queue ${nth}`, {}]))
  const { fetcher, claims, surveys } = fetcherOf(queues)
  fetcher.start()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(claims).toEqual([])
  expect(surveys()).toBeGreaterThanOrEqual(10)
  expect(surveys()).toBeLessThanOrEqual(13)
  await fetcher.stop()
})

test('a job that becomes due before the next poll is looked for when it does', async () => {
  const asked: number[] = []
  const started = performance.now()
  const survey = async () => {
    asked.push(Math.round(performance.now() - started))
    return { due: [], nextMs: asked.length === 1 ? 300 : undefined, expired: false, scheduled: false }
  }
  const { fetcher } = fetcherOf({}, { survey })
  fetcher.start()
  await vi.advanceTimersByTimeAsync(500)
  expect(asked).toHaveLength(2)
  expect(asked[1]).toBeGreaterThanOrEqual(300)
  expect(asked[1]).toBeLessThan(310)
  await fetcher.stop()
})

test('a job that is due in a year does not keep the worker awake', async () => {
  let surveys = 0
  const survey = async () => {
    surveys += 1
    return { due: [], nextMs: 365 * 86_400_000, expired: false, scheduled: false }
  }
  const { fetcher } = fetcherOf({}, { survey })
  fetcher.start()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(surveys).toBeLessThanOrEqual(3)
  await fetcher.stop()
})

test('a survey that fails does not keep a queue that was announced from being claimed from', async () => {
  const { fetcher, claims } = fetcherOf(
    { default: { plain: 1 } },
    {
      survey: async () => {
        throw new Error('this statement fails')
      },
    },
  )
  fetcher.look(['default'])
  fetcher.start()
  await vi.advanceTimersByTimeAsync(3_000)
  expect(claims).toContain('default')
  void fetcher.stop()
})
