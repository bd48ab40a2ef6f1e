// @ts-check
import { connect } from '../postgres.mjs'
import { durableRow } from '../results.mjs'

/** @typedef {import('../cell.mjs').Cell} Cell */

const drainRow = { key: 'drain', label: 'drain, no-op', unit: 'jobs/s', better: 'higher', bar: { atLeast: 1.5 } }

export const drain = {
  name: 'drain',
  title: 'drain of no-ops',
  rows: [
    drainRow,
    durableRow(drainRow),
    {
      key: 'drain_wal',
      label: 'WAL per drained job',
      unit: 'bytes',
      better: 'lower',
      bar: { atMost: 1.3, of: 'graphile-worker' },
    },
    { key: 'drain_worker_cpu', label: 'worker CPU per drained job', unit: 'µs', better: 'lower' },
    { key: 'drain_server_cpu', label: 'Postgres CPU per drained job', unit: 'µs', better: 'lower' },
  ],
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.rows(cell.sizes.drain)
    await cell.begin()
    await cell.once('enqueue_bulk', { count })
    await cell.settle()
    const { perSecond, walBytesPerJob, workerCpuMs, serverCpuMs } = await cell.drain(count)
    return {
      drain: perSecond,
      drain_wal: walBytesPerJob,
      drain_worker_cpu: (workerCpuMs * 1000) / count,
      ...(serverCpuMs === undefined ? {} : { drain_server_cpu: (serverCpuMs * 1000) / count }),
    }
  },
}

export const drainSleep = {
  name: 'drain-1ms',
  title: 'drain with 1 ms handlers, 100 at once',
  rows: [
    {
      key: 'drain_1ms',
      label: 'drain, 1 ms handlers, 100 at once',
      unit: 'jobs/s',
      better: 'higher',
      bar: { atLeast: 1.1 },
    },
  ],
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.rows(cell.sizes.drainSleep)
    await cell.begin()
    await cell.once('enqueue_bulk', { count })
    await cell.settle()
    const { perSecond } = await cell.drain(count, { profile: 'sleep', handler: 'sleep' })
    return { drain_1ms: perSecond }
  },
}

const rounds = [1, 2, 3]

export const xminHeld = {
  name: 'xmin',
  title: 'drain while a transaction holds back vacuum, 3 rounds',
  rows: rounds.map((round) => ({
    key: `xmin_${round}`,
    label: `drain, xmin held, round ${round}`,
    unit: 'jobs/s',
    better: 'higher',
    ...(round === 3 ? { bar: { atLeast: 1.3 } } : {}),
  })),
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.rows(cell.sizes.xmin)
    await cell.begin()
    await cell.settle()
    const holder = await connect(cell.url)
    const values = {}
    try {
      await holder.query('begin isolation level repeatable read')
      await holder.query('select pg_current_xact_id(), (select count(*) from pg_class)')
      for (const round of rounds) {
        cell.say(`round ${round}`)
        await cell.once('enqueue_bulk', { count })
        values[`xmin_${round}`] = (await cell.drain(count)).perSecond
      }
    } finally {
      await holder.end()
    }
    return values
  },
}
