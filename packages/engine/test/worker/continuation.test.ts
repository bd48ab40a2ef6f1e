import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { operation } from '../../src/operation.ts'
import { openBed, type Bed } from '../bed.ts'

/*
 * A worker at a long queue goes on from where its last claim ended. What comes in before that place, unannounced, must
 * still be found while the queue is long.
 */

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
afterAll(() => bed.close())

test('a job that comes in before the place where a worker is at is run long before the queue is empty', async () => {
  const stop = new AbortController()
  let ran = 0
  const early = operation('early', { payload: z.object({}), run: async () => stop.abort() })
  const late = operation('late', {
    payload: z.object({}),
    run: async () => {
      ran += 1
    },
  })
  const engine = await bed.open({ operations: [early, late] })
  await engine.submitMany(
    late,
    Array.from({ length: 2000 }, () => ({ payload: {} })),
  )
  // More than can be worked off before the test has looked.
  await bed.query(
    `insert into fencepost.live_jobs (job_id, operation, queue, payload, run_after, max_attempts, submitted_at)
     select fencepost.new_job_id(fencepost.clock(), nth), 'late', 'default', '{}', fencepost.clock(), 3, fencepost.clock()
       from generate_series(1, 60000) nth`,
  )
  const working = engine.work({ concurrency: 100, maxBatch: 100, wakeUp: 'none', pollMs: 600_000, signal: stop.signal })
  await expect.poll(() => ran, { timeout: 20_000 }).toBeGreaterThan(500)
  await bed.query(
    `insert into fencepost.live_jobs (job_id, operation, queue, payload, run_after, max_attempts, submitted_at)
     values (fencepost.new_job_id(fencepost.clock(), 0), 'early', 'default', '{}', '2000-01-01', 3, fencepost.clock())`,
  )
  await working
  const [left] = await bed.query<{ left: number }>(
    `select count(*)::integer as left from fencepost.jobs where status = 'pending' and operation = 'late'`,
  )
  expect(left?.left).toBeGreaterThan(0)
}, 60_000)
