// @ts-check
import { crash } from './crash.mjs'
import { drain, drainSleep, xminHeld } from './drain.mjs'
import { bulk, inTransaction, single } from './enqueue.mjs'
import { fanOut } from './fan-out.mjs'
import { freeze } from './freeze.mjs'
import { latency } from './latency.mjs'
import { backlog, crowd } from './millions.mjs'

/** In the order in which they are run and printed. */
export const workloads = [
  bulk,
  single,
  inTransaction,
  drain,
  drainSleep,
  latency,
  xminHeld,
  backlog,
  crowd,
  fanOut,
  crash,
  freeze,
]

export const sizes = {
  full: {
    runs: 3,
    bulk: 100_000,
    singleSeconds: 5,
    drain: 100_000,
    drainSleep: 100_000,
    pulses: 600,
    xmin: 100_000,
    million: 1_000_000,
    children: 10_000,
    crashSeconds: 95,
  },
  quick: {
    runs: 1,
    bulk: 50_000,
    singleSeconds: 1.5,
    drain: 50_000,
    drainSleep: 20_000,
    pulses: 120,
    xmin: 20_000,
    million: 200_000,
    children: 1000,
    crashSeconds: 40,
  },
}
