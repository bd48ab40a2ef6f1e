import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { operation } from '../../src/operation.ts'
import { openBed, type Bed } from '../bed.ts'

const reasons: (string | undefined)[] = []
const transacting = operation('transacting', {
  payload: z.looseObject({}),
  leaseMs: 1_000,
  run: async ({ attempt }) => {
    await attempt.transaction((client) => client.query('select pg_sleep(1.5)'))
    reasons.push(attempt.abortReason)
  },
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [transacting] })
})
afterAll(() => bed.close())

test('handlers whose transactions take every connection of the pool keep their leases', async () => {
  const engine = await bed.open({ maxConnections: 2 })
  await bed.engine.submitMany(transacting, [{ payload: {} }, { payload: {} }])
  const stop = new AbortController()
  const worked = engine.work({ concurrency: 2, signal: stop.signal })
  await expect.poll(() => bed.engine.list({ status: 'completed' }), { timeout: 10_000 }).toHaveLength(2)
  stop.abort()
  await worked
  expect(reasons).toEqual([undefined, undefined])
  expect((await bed.engine.list()).map(({ attempts }) => attempts)).toEqual([1, 1])
})
