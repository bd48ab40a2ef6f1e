// @ts-check
import { setTimeout as pause } from 'node:timers/promises'
import { now } from '../clock.mjs'
import { connect } from '../postgres.mjs'

/** @typedef {import('../cell.mjs').Cell} Cell */

const lookEveryMs = 10

export const fanOut = {
  name: 'fan-out',
  title: 'one parent, many children: from the call to the parent done',
  rows: [{ key: 'fan_out', label: 'fan-out: parent done after', unit: 's', better: 'lower' }],
  applies: ({ can }) => can.fanOut,
  /** @param {Cell} cell */
  run: async (cell) => {
    const { children, fanOutSeconds } = cell.sizes
    await cell.begin()
    await cell.settle()
    const options = { options: cell.system.flow ?? {} }
    const worker = await cell.start(options)
    await worker.call('work', { profile: 'drain', handler: 'noop' })
    const producer = await cell.start(options)
    const client = await connect(cell.url)
    const began = now()
    await producer.call('fan_out', { children })
    let askedAt = now()
    for (;;) {
      const { rows } = await client.query(cell.system.anyLeft)
      if (!rows[0].any_left || askedAt - began > fanOutSeconds * 1000) break
      await pause(lookEveryMs)
      askedAt = now()
    }
    const handled = await worker.call('handled', { count: 0 })
    await client.end()
    await Promise.all([worker.end(), producer.end()])
    if (askedAt - began > fanOutSeconds * 1000) return { fan_out: { over: fanOutSeconds } }
    if (handled < children) throw new Error(`${handled} of ${children} children ran.`)
    return { fan_out: (askedAt - began) / 1000 }
  },
}
