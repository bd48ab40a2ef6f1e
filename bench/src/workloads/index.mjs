// @ts-check
import { workloadNames } from '../names.mjs'
import { crash } from './crash.mjs'
import { drain, drainSleep, xminHeld } from './drain.mjs'
import { bulk, inTransaction, single } from './enqueue.mjs'
import { fanOut } from './fan-out.mjs'
import { freeze } from './freeze.mjs'
import { latency } from './latency.mjs'
import { backlog, crowd } from './millions.mjs'
import { chained, failing, retryLater } from './outcomes.mjs'

const all = [
  bulk,
  single,
  inTransaction,
  drain,
  drainSleep,
  failing,
  chained,
  retryLater,
  latency,
  xminHeld,
  backlog,
  crowd,
  fanOut,
  crash,
  freeze,
]

/** In the order in which they are run and printed. */
export const workloads = workloadNames.map((wanted) => {
  const found = all.find(({ name }) => name === wanted)
  if (found === undefined) throw new Error(`There is no workload for the name ${wanted}.`)
  return found
})
