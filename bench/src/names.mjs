// @ts-check

/*
 * What can be asked for by name. Without an import, so that options can be read and --help printed before anything is
 * installed.
 */

/** In the order in which they are run and printed. */
export const workloadNames = [
  'bulk',
  'single',
  'transaction',
  'drain',
  'drain-1ms',
  'failing',
  'chained',
  'retry-later',
  'latency',
  'xmin',
  'backlog',
  'future-and-finished',
  'fan-out',
  'crash',
  'freeze',
]

/** Not in a quick run, unless asked for by name. */
export const longWorkloads = ['future-and-finished']

/** Their bars are parts of our own `drain`, which has to come from the same result. */
export const comparedWithDrain = ['failing', 'chained', 'retry-later', 'backlog']

export const systemNames = ['fencepost', 'graphile-worker', 'pg-boss', 'bullmq']
