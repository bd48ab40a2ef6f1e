// @ts-check

/** @typedef {import('../cell.mjs').Cell} Cell */

/*
 * Jobs that end in other ways than by completing. What is counted are runs of handlers that were settled: a job that
 * comes back once is two, and so is one that chains another. The bars are parts of our own drain of no-ops.
 */

export const failing = {
  name: 'failing',
  title: 'drain of jobs that fail for good',
  rows: [
    {
      key: 'failing',
      label: 'drain, every job fails',
      unit: 'jobs/s',
      better: 'higher',
      bar: { atLeast: 0.5, against: 'drain' },
    },
    {
      key: 'failing_half',
      label: 'drain, every second job fails',
      unit: 'jobs/s',
      better: 'higher',
      bar: { atLeast: 0.6, against: 'drain' },
    },
  ],
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.rows(cell.sizes.outcomes)
    const all = await drained(cell, { count, once: true }, 'fail')
    if (cell.system.takesBatches) return { failing: all }
    return { failing: all, failing_half: await drained(cell, { count, once: true }, 'fail_every_second') }
  },
}

export const chained = {
  name: 'chained',
  title: 'drain of jobs that each chain another',
  rows: [
    {
      key: 'chained',
      label: 'drain, every job chains another',
      unit: 'jobs/s',
      better: 'higher',
      bar: { atLeast: 0.5, against: 'drain' },
    },
  ],
  applies: ({ can }) => can.chain,
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.rows(cell.sizes.outcomes) / 2
    return { chained: await drained(cell, { count }, 'chain', 2 * count) }
  },
}

export const retryLater = {
  name: 'retry-later',
  title: 'drain of jobs that each ask once to come back',
  rows: [
    {
      key: 'retry_later',
      label: 'drain, every job comes back once',
      unit: 'runs/s',
      better: 'higher',
      bar: { atLeast: 0.5, against: 'drain' },
    },
  ],
  applies: ({ can }) => can.comeBack,
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.rows(cell.sizes.outcomes) / 2
    return { retry_later: await drained(cell, { count }, 'come_back', 2 * count) }
  },
}

/** So many runs of handlers a second, from the order to work to the last commit. */
async function drained(cell, enqueuing, handler, runs = enqueuing.count) {
  await cell.begin()
  await cell.once('enqueue_bulk', enqueuing)
  await cell.settle()
  return (await cell.drain(runs, { handler })).perSecond
}
