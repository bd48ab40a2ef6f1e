import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { PausePoint } from '../../src/database/database.ts'
import type { Engine } from '../../src/engine.ts'
import { minLeaseMs, operation } from '../../src/operation.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

// A claim that is answered when its lease may already have passed: somebody else may have the job by then.

let ran = 0
const quick = operation('quick', {
  payload: z.looseObject({}),
  leaseMs: minLeaseMs,
  run: async () => {
    ran += 1
  },
})

let bed: Bed
let late: Engine
let delays = 0
beforeAll(async () => {
  bed = await openBed({ operations: [quick] })
  const pausePoint: PausePoint = async ({ statement }) => {
    if (statement !== 'claim' || delays === 0) return
    delays -= 1
    const until = performance.now() + minLeaseMs
    await expect.poll(() => performance.now(), { interval: 10 }).toBeGreaterThan(until)
  }
  late = await bed.open({}, { pausePoint })
})
beforeEach(async () => {
  await bed.reset()
  ran = 0
})
afterAll(() => bed.close())

const released = () => bed.query(`select message from fencepost.job_events where event = 'job.released'`)

test('one job that was claimed too late is given back, and its handler does not begin', async () => {
  const jobId = await submitted(bed.engine.submit(quick, {}))
  delays = 1
  expect(await late.workOnce({ wakeUp: 'none' })).toEqual({ outcome: 'released', jobId })
  expect(ran).toBe(0)
  expect(await released()).toEqual([{ message: 'database_unreachable' }])
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
})

test('a worker gives back what it claimed too late, and runs it when it is claimed in time', async () => {
  const jobId = await submitted(bed.engine.submit(quick, {}))
  delays = 1
  const controller = new AbortController()
  const worked = late.work({ pollMs: 50, wakeUp: 'none', signal: controller.signal })
  try {
    await expect.poll(() => bed.engine.get(jobId), { timeout: 10_000 }).toMatchObject({ status: 'completed' })
  } finally {
    controller.abort()
    await worked
  }
  expect(ran).toBe(1)
  expect(await released()).toContainEqual({ message: 'database_unreachable' })
})
