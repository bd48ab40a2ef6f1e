// @ts-check
import { setTimeout as pause } from 'node:timers/promises'
import { now } from '../clock.mjs'

/** @typedef {import('../cell.mjs').Cell} Cell */

const jobs = 100

export const crash = {
  name: 'crash',
  title: 'SIGKILL of one of two workers, holding 100 jobs, at default leases',
  rows: [
    { key: 'crash', label: 'SIGKILL: all 100 jobs re-run after', unit: 's', better: 'lower', bar: { atMost: 1 } },
    {
      key: 'crash_duplicates',
      label: 'SIGKILL: jobs re-run more than once',
      unit: 'jobs',
      better: 'lower',
      worst: true,
    },
  ],
  // They only wait for their leases, so all systems wait at the same time.
  together: true,
  /** @param {Cell} cell */
  run: async (cell) => {
    const { crashSeconds } = cell.sizes
    await cell.begin()
    await cell.once('enqueue_bulk', { count: jobs })
    const options = { poolSize: 20, options: cell.system.defaultLease }
    const killed = await cell.start(options)
    await killed.call('work', { profile: 'hold', handler: 'hold' })
    await killed.call('handled', { count: jobs })
    const other = await cell.start(options)
    await other.call('work', { profile: 'hold', handler: 'record' })
    await pause(1000) // settled in, as a second worker is
    await killed.kill()
    const began = now()
    while ((await cell.left()) > 0) {
      if (now() - began > crashSeconds * 1000) return { crash: { over: crashSeconds } }
      await pause(100)
    }
    const seconds = (now() - began) / 1000
    const handled = await other.call('handled', { count: 0 })
    return { crash: seconds, crash_duplicates: handled - jobs }
  },
}
