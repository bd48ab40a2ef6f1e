import { setTimeout as pause } from 'node:timers/promises'
import { child, defer, operation } from '@fencepost/engine'
import { z } from 'zod'

const milliseconds = z.int().min(0).max(60_000)

/** Reports progress. */
const count = operation('sample_count', {
  keys: 'caller',
  payload: z.strictObject({ to: z.int().min(1).max(1_000).default(10), step_ms: milliseconds.default(500) }),
  async run({ payload, attempt, signal }) {
    for (let current = 1; current <= payload.to; current += 1) {
      await pause(payload.step_ms, undefined, { signal })
      await attempt.emit('sample_count.counted', {
        message: `${current} of ${payload.to}`,
        progress: { current, total: payload.to },
      })
    }
    return { counted: payload.to }
  },
})

/** Fails, is retried, and completes in the end, unless it is to fail more often than it is tried. */
const flaky = operation('sample_flaky', {
  payload: z.strictObject({ failures: z.int().min(0).max(10).default(2) }),
  maxAttempts: 4,
  retry: { firstDelayMs: 1_000, maxDelayMs: 10_000 },
  async run({ payload, attempt }) {
    const nth = attempt.claimed.attempts
    if (nth <= payload.failures) throw new Error(`attempt ${nth} fails, as it was asked to`)
    return { completed_by_attempt: nth }
  },
})

/** Waits for children, which run side by side. */
const fanOut = operation('sample_fan_out', {
  payload: z.strictObject({ children: z.int().min(1).max(1_000).default(5), step_ms: milliseconds.default(500) }),
  async run({ payload }) {
    const children = Array.from({ length: payload.children }, (_, nth) =>
      child(count, { to: 3 + (nth % 3), step_ms: payload.step_ms }),
    )
    return defer(children, { failWhen: 'any', result: { children: payload.children } })
  },
})

/** What `fencepost up` runs until it is given operations of its user's. */
export const operations = [count, flaky, fanOut]
