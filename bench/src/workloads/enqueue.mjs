// @ts-check

/** @typedef {import('../cell.mjs').Cell} Cell */

export const bulk = {
  name: 'bulk',
  title: 'bulk enqueue',
  rows: [{ key: 'bulk', label: 'bulk enqueue', unit: 'jobs/s', better: 'higher', bar: { atLeast: 1.2 } }],
  /** @param {Cell} cell */
  run: async (cell) => {
    const count = cell.sizes.bulk
    await cell.begin()
    await cell.settle()
    const { ms } = await cell.once('enqueue_bulk', { count })
    await checkThere(cell, count)
    return { bulk: (count / ms) * 1000 }
  },
}

const inFlights = [1, 10, 32]

export const single = {
  name: 'single',
  title: 'single enqueue, 1, 10 and 32 in flight',
  rows: inFlights.map((inFlight) => ({
    key: `single_${inFlight}`,
    label: `single enqueue, ${inFlight} in flight`,
    unit: 'jobs/s',
    better: 'higher',
    ...(inFlight === 10 ? { bar: { atLeast: 3 } } : {}),
  })),
  /** @param {Cell} cell */
  run: async (cell) => {
    const values = {}
    for (const inFlight of inFlights) {
      await cell.begin()
      const { count, ms } = await cell.once(
        'enqueue_single',
        { seconds: cell.sizes.singleSeconds, inFlight },
        { poolSize: Math.max(10, inFlight) },
      )
      await checkThere(cell, count)
      values[`single_${inFlight}`] = (count / ms) * 1000
    }
    return values
  },
}

export const inTransaction = {
  name: 'transaction',
  title: "enqueue in the caller's transaction, 10 in flight",
  rows: [
    {
      key: 'transaction',
      label: "enqueue in the caller's transaction, 10 in flight",
      unit: 'jobs/s',
      better: 'higher',
      bar: { atLeast: 1.1 },
    },
  ],
  applies: ({ can }) => can.enqueueInTransaction,
  /** @param {Cell} cell */
  run: async (cell) => {
    await cell.begin()
    const { count, ms } = await cell.once('enqueue_in_transaction', {
      seconds: cell.sizes.singleSeconds,
      inFlight: 10,
    })
    await checkThere(cell, count)
    return { transaction: (count / ms) * 1000 }
  },
}

/** What was answered is in the database: no more and no less. */
async function checkThere(cell, count) {
  const left = await cell.left()
  if (left !== count) throw new Error(`${left} jobs are there, and ${count} were answered.`)
}
