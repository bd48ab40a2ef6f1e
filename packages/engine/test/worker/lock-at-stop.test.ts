import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { operation } from '../../src/operation.ts'
import type { WorkOptions } from '../../src/worker/options.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

// A worker is stopped in a process that lives on, while a handler does not end: its lock and slot are not for others yet.

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [slow] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

let gate = closedGate()
let begun = 0
const slow = operation('slow', {
  keys: 'caller',
  payload: z.looseObject({}),
  leaseMs: 1_000,
  run: async () => {
    begun += 1
    await gate.opened
    return 'ended'
  },
})

function closedGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

beforeEach(() => {
  gate = closedGate()
  begun = 0
})

/** A stopped worker; whether its work() has resolved. */
async function stopped(options: WorkOptions = {}) {
  const controller = new AbortController()
  const state = { resolved: false }
  const worked = bed.engine.work({ pollMs: 50, graceMs: 10, ...options, signal: controller.signal })
  const done = worked.then(() => (state.resolved = true))
  await expect.poll(() => begun).toBe(1)
  controller.abort()
  return { state, done }
}

const leaseOf = async (jobId: string) => (await bed.engine.get(jobId))?.leaseUntil

describe('a worker stopped in a process that lives on', () => {
  test.each([{ lockKey: 'l' }, { slotKey: 's' }])(
    'keeps a job with %o and its lease until its handler has returned',
    async (keys) => {
      const jobId = await submitted(bed.engine.submit(slow, {}, keys))
      const { state, done } = await stopped()
      const first = await leaseOf(jobId)
      await expect.poll(() => leaseOf(jobId), { timeout: 10_000 }).not.toBe(first)
      expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', attempts: 1 })
      expect(await bed.engine.workers()).toHaveLength(1)
      expect(state.resolved).toBe(false)
      gate.open()
      await done
      expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: 'ended', attempts: 1 })
      expect(await bed.engine.workers()).toEqual([])
    },
  )

  test('gives back a job without lock and slot after the grace', async () => {
    const jobId = await submitted(bed.engine.submit(slow, {}))
    const { done } = await stopped()
    await done
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
    gate.open()
  })

  test('keeps the one job of workOnce() too', async () => {
    const jobId = await submitted(bed.engine.submit(slow, {}, { lockKey: 'l' }))
    const controller = new AbortController()
    const worked = bed.engine.workOnce({ graceMs: 10, signal: controller.signal })
    await expect.poll(() => begun).toBe(1)
    controller.abort()
    const first = await leaseOf(jobId)
    await expect.poll(() => leaseOf(jobId), { timeout: 10_000 }).not.toBe(first)
    gate.open()
    expect(await worked).toEqual({ outcome: 'completed', jobId })
  })
})

test('a worker whose process is about to end gives back a job with a lock after the grace', async () => {
  const jobId = await submitted(bed.engine.submit(slow, {}, { lockKey: 'l' }))
  const { done } = await stopped({ processEnds: true })
  await done
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'pending', attempts: 0 })
  gate.open()
})
