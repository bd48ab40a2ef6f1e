import { operation, PermanentError } from '@fencepost/engine'
import { z } from 'zod'
import { nameOf, type Name } from './names.ts'

const payload = z.looseObject({})

const echo = operation(nameOf('echo'), { payload, run: async (run) => run.payload })
const isolated = operation('isolated' satisfies Name, {
  payload,
  isolation: 'process',
  run: async () => ({ pid: process.pid }),
})
const failing = operation(nameOf('failing'), {
  payload,
  run: async () => {
    throw new PermanentError('it does not work')
  },
})
/** Does not stop when it is told to. */
const stubborn = operation(nameOf('stubborn'), {
  payload,
  run: async ({ attempt }) => {
    await attempt.emit('stubborn.begun')
    await new Promise((resolve) => setInterval(resolve, 2_000_000_000))
  },
})

export const operations = [echo, isolated, failing, stubborn]
