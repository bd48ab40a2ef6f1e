// @ts-check
import { setTimeout as pause } from 'node:timers/promises'
import { now } from '../clock.mjs'

/** @typedef {import('../cell.mjs').Cell} Cell */

const jobs = 20
const takenOverWithinMs = 60_000
const lateWritesMs = 3000

/*
 * A worker is stopped with 20 jobs in hand until another has taken them all over, then continued: its handlers return,
 * and it reports them done. The other is still at work on every one of them, so any change of a job's state or attempt
 * is a stale write that was accepted.
 */
export const freeze = {
  name: 'freeze',
  title: 'SIGSTOP past the lease, then SIGCONT',
  rows: [
    {
      key: 'stale',
      label: `SIGSTOP: stale writes accepted, of ${jobs}`,
      unit: 'jobs',
      better: 'lower',
      bar: { zero: true },
    },
  ],
  together: true,
  /** @param {Cell} cell */
  run: async (cell) => {
    const { system } = cell
    const options = { poolSize: 20, options: system.shortLease }
    await cell.begin('short_lease')
    await cell.once('enqueue_bulk', { count: jobs }, options)
    const frozen = await cell.start(options)
    await frozen.call('work', { profile: 'hold', handler: 'hold' })
    await frozen.call('handled', { count: jobs })
    frozen.signal('SIGSTOP')
    const dead = system.deadWorkers === undefined ? [] : await cell.query(system.deadWorkers)
    const other = await cell.start(options)
    await other.call('work', { profile: 'hold', handler: 'hold' })
    if (dead.length > 0) await other.call('take_for_dead', { workerIds: dead.map(({ worker }) => worker) })
    await within(takenOverWithinMs, other.call('handled', { count: jobs }))
    const before = await attemptsOf(cell)
    const finished = frozen.call('finish') // read when it continues
    frozen.signal('SIGCONT')
    await finished
    await pause(lateWritesMs)
    const after = await attemptsOf(cell)
    const stale = [...before].filter(([id, attempt]) => after.get(id) !== attempt).length
    await Promise.all([frozen.kill(), other.kill()])
    return { stale }
  },
}

async function attemptsOf(cell) {
  const rows = await cell.query(cell.system.attempts)
  return new Map(rows.map(({ id, attempt }) => [id, attempt]))
}

async function within(ms, promise) {
  const late = { late: true }
  const began = now()
  const first = await Promise.race([promise, pause(ms, late, { ref: false })])
  if (first === late) throw new Error(`Not taken over within ${Math.round(now() - began)} ms.`)
}
