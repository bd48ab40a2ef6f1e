// @ts-check
import { durableRow } from '../results.mjs'
import { percentile } from '../statistics.mjs'

/** @typedef {import('../cell.mjs').Cell} Cell */
/** @typedef {import('../meeting.mjs').Meeting} Meeting */

const warmUp = 10
/** A second or so. */
const pulsesPerTurn = 20

const barred = [50, 99].map((percent) => ({
  key: `latency_p${percent}`,
  label: `idle latency, p${percent}`,
  unit: 'ms',
  better: 'lower',
  bar: { atMost: 1 },
}))

export const latency = {
  name: 'latency',
  title: 'idle latency, from commit to handler start',
  rows: [
    ...barred,
    ...barred.map(durableRow),
    { key: 'latency_call_p50', label: 'idle latency from the call, p50', unit: 'ms', better: 'lower' },
  ],
  // A slow moment of the machine, which may last for seconds, makes the p99: it should meet all systems alike.
  together: true,
  /** @param {Cell} cell @param {Meeting} meeting */
  run: async (cell, meeting) => {
    const count = cell.sizes.pulses + warmUp
    await cell.begin()
    const worker = await cell.start()
    await worker.call('work', { profile: 'latency', handler: 'record' })
    const enqueuer = await cell.start()
    await meeting.all()
    const sent = []
    while (sent.length < count) {
      const turn = { from: sent.length, count: Math.min(pulsesPerTurn, count - sent.length), everyMs: 50 }
      sent.push(...(await meeting.inTurn(() => enqueuer.call('pulse', turn))))
    }
    await meeting.all()
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
