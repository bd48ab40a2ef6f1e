import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { silentLogger } from '../logger.ts'
import { Fetcher } from './fetcher.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test('a worker that had no room looks again, though nobody says that it has some', async () => {
  let room = 0
  let claims = 0
  const fetcher = new Fetcher(
    {
      claims: {
        plain: async () => {
          claims += 1
          return { attempts: [], last: undefined }
        },
        ofQueue: async () => [],
      },
      room: () => room,
      accept: () => {},
      msUntilDue: async () => undefined,
    },
    { queues: ['default'], operations: [], pollMs: 1_000 },
    silentLogger,
  )
  fetcher.look(['default'])
  await vi.advanceTimersByTimeAsync(3_000)
  expect(claims).toBe(0)
  room = 5 // its leases are no longer in danger, say
  await vi.advanceTimersByTimeAsync(1_500)
  expect(claims).toBeGreaterThan(0)
  await fetcher.stop()
})
