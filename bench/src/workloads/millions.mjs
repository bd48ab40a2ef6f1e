// @ts-check

/** @typedef {import('../cell.mjs').Cell} Cell */

const inADay = 86_400

export const backlog = {
  name: 'backlog',
  title: 'drain of the first jobs of a big backlog',
  rows: [
    {
      key: 'backlog',
      label: 'drain, first jobs of the backlog',
      unit: 'jobs/s',
      better: 'higher',
      // Depth must cost nothing: compared with our own drain of a short queue in the same run.
      bar: { atLeast: 0.9, against: 'drain' },
    },
  ],
  applies: ({ name }, { backlogOfPeers }) => backlogOfPeers || name === 'fencepost',
  /** @param {Cell} cell */
  prepare: async (cell) => {
    await cell.begin()
    await cell.once('enqueue_bulk', { count: cell.sizes.million })
    await cell.settle()
    await keepAs(cell, 'backlog')
  },
  /** @param {Cell} cell */
  run: async (cell) => {
    await cell.begin('backlog')
    await cell.settle()
    const { perSecond } = await cell.drainSome(cell.rows(cell.sizes.drain))
    return { backlog: perSecond }
  },
  /** @param {Cell} cell */
  tidy: (cell) => cell.postgres.drop(cell.template('backlog')),
}

export const crowd = {
  name: 'future-and-finished',
  title: 'drain beside many future and many finished jobs',
  rows: [{ key: 'crowd', label: 'drain beside future and finished jobs', unit: 'jobs/s', better: 'higher' }],
  // The finished ones are made by finishing them; a system that keeps none only has the future ones.
  /** @param {Cell} cell */
  prepare: async (cell) => {
    const { million } = cell.sizes
    await cell.begin()
    if (cell.system.keepsFinished) {
      await cell.once('enqueue_bulk', { count: million })
      cell.say('finishing them')
      await cell.drain(million)
    }
    await cell.once('enqueue_bulk', { count: million, startInSeconds: inADay })
    await cell.settle()
    await keepAs(cell, 'crowd')
  },
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.rows(cell.sizes.drain)
    await cell.begin('crowd')
    await cell.once('enqueue_bulk', { count })
    await cell.settle()
    const { perSecond } = await cell.drainSome(count)
    return { crowd: perSecond }
  },
  /** @param {Cell} cell */
  tidy: (cell) => cell.postgres.drop(cell.template('crowd')),
}

/** What the cell's database holds now becomes a template of its system's. */
async function keepAs(cell, name) {
  await cell.postgres.recreate(cell.template(name), cell.database)
}
