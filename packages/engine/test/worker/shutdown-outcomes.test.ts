import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { PausePoint } from '../../src/database/database.ts'
import { FencepostError } from '../../src/errors.ts'
import { operation } from '../../src/operation.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

// What a worker still has to write, or is only about to get, when it is told to stop.

const quick = operation('quick', {
  keys: 'caller',
  payload: z.looseObject({}),
  onShutdown: 'fail',
  leaseMs: 1_000,
  run: async () => 'done',
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [quick] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

async function start(graceMs: number, pausePoint: PausePoint) {
  const engine = await bed.open({}, { pausePoint })
  const stop = new AbortController()
  const worked = engine.work({ graceMs, wakeUp: 'none', signal: stop.signal })
  return async () => {
    stop.abort()
    await worked
  }
}

test('a success that could not be written yet stays a success', async () => {
  let tries = 0
  let away = true
  const stop = await start(10, async ({ statement }) => {
    if (statement !== 'complete') return
    tries += 1
    if (away) throw new FencepostError('database_unavailable', 'away', { retryable: true })
  })
  const jobId = await submitted(bed.engine.submit(quick, {}))
  await expect.poll(() => tries, { timeout: 20_000 }).toBeGreaterThanOrEqual(5) // and waits longer than the grace
  away = false
  await stop()
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: 'done', attempts: 1 })
  expect((await bed.engine.events(jobId)).map(({ event }) => event)).toEqual([
    'job.submitted',
    'job.started',
    'job.completed',
  ])
})

test('a claim that is answered after the grace is given back', async () => {
  let claims = 0
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  const jobId = await submitted(bed.engine.submit(quick, {}, { lockKey: 'l' }))
  const stop = await start(10, async ({ statement }) => {
    if (statement !== 'claim') return
    claims += 1
    await gate
  })
  await expect.poll(() => claims).toBe(1)
  await stop()
  letGo()
  await expect.poll(async () => (await bed.engine.events(jobId)).at(-1)?.event).toBe('job.released')
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
})
