// @ts-check
import { percentile } from '../statistics.mjs'

/** @typedef {import('../cell.mjs').Cell} Cell */

const warmUp = 10

export const latency = {
  name: 'latency',
  title: 'idle latency, from commit to handler start',
  rows: [
    { key: 'latency_p50', label: 'idle latency, p50', unit: 'ms', better: 'lower', bar: { atMost: 1 } },
    { key: 'latency_p99', label: 'idle latency, p99', unit: 'ms', better: 'lower', bar: { atMost: 1 } },
    { key: 'latency_call_p50', label: 'the same from the call, p50', unit: 'ms', better: 'lower' },
  ],
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.sizes.pulses + warmUp
    await cell.begin()
    const worker = await cell.start()
    await worker.call('work', { profile: 'latency', handler: 'record' })
    const enqueuer = await cell.start()
    const sent = await enqueuer.call('pulse', { count, everyMs: 50 })
    await worker.call('handled', { count })
    const starts = new Map((await worker.call('starts')).map(({ nth, at }) => [nth, at]))
    const counted = sent.filter(({ nth }) => nth >= warmUp)
    const fromCommit = counted.map(({ nth, committedAt }) => starts.get(nth) - committedAt)
    const fromCall = counted.map(({ nth, calledAt }) => starts.get(nth) - calledAt)
    await Promise.all([worker.end(), enqueuer.end()])
    return {
      latency_p50: percentile(fromCommit, 50),
      latency_p99: percentile(fromCommit, 99),
      latency_call_p50: percentile(fromCall, 50),
    }
  },
}
