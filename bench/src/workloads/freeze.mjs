// @ts-check
import { setTimeout as pause } from 'node:timers/promises'
import { now } from '../clock.mjs'
import { within } from '../within.mjs'

/** @typedef {import('../cell.mjs').Cell} Cell */

const jobs = 20
const lateWritesMs = 3000
const refusedWithinMs = 10_000
const lookEveryMs = 100

/*
 * A worker is stopped with 20 jobs in hand until another has taken them all over, then continued: its handlers return,
 * and it reports them done. The other is still at work on every one of them, so any change of a job's state or attempt
 * is a stale write that was accepted.
 *
 * That nothing changed proves something only if the worker did report. We keep an event of every refusal, so ours is
 * waited for; peers keep nothing of the kind, and are given three seconds.
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
      worst: true,
      bar: { zero: true },
    },
  ],
  together: true,
  /** @param {Cell} cell */
  run: async (cell) => {
    const { system, sizes } = cell
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
    await within(sizes.freezeSeconds, other.call('handled', { count: jobs }))
    const before = await attemptsOf(cell)
    const finished = frozen.call('finish') // read when it continues
    frozen.signal('SIGCONT')
    await finished
    const refused = await refusals(cell)
    const after = await attemptsOf(cell)
    const stale = [...before].filter(([id, attempt]) => after.get(id) !== attempt).length
    await Promise.all([frozen.kill(), other.kill()])
    if (refused !== undefined && refused + stale < jobs) {
      throw new Error(`Of ${jobs} jobs, the thawed worker reported nothing on ${jobs - refused - stale}.`)
    }
    return { stale }
  },
}

/** Waits until the thawed worker has had its say. How many jobs' reports were refused, where that can be seen. */
async function refusals(cell) {
  if (cell.system.refused === undefined) {
    await pause(lateWritesMs)
    return undefined
  }
  const until = now() + refusedWithinMs
  for (;;) {
    const [{ refused }] = await cell.query(cell.system.refused)
    if (refused >= jobs || now() > until) return refused
    await pause(lookEveryMs)
  }
}

async function attemptsOf(cell) {
  const rows = await cell.query(cell.system.attempts)
  return new Map(rows.map(({ id, attempt }) => [id, attempt]))
}
