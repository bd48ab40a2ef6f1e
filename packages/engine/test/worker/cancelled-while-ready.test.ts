import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { operation } from '../../src/operation.ts'
import { openBed, type Bed } from '../bed.ts'

let letGo = () => {}
const gate = new Promise<void>((resolve) => {
  letGo = resolve
})
const begun = new Set<string>()
const told = new Set<string>()
const handled = operation('handled', {
  payload: z.object({ blocks: z.boolean() }),
  run: async ({ payload, attempt }) => {
    begun.add(attempt.jobId)
    attempt.signal.addEventListener('abort', () => told.add(attempt.jobId))
    if (payload.blocks) await gate
  },
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [handled] })
})
afterAll(() => bed.close())

test('a job that is cancelled after it was claimed, and before it has begun, does not begin', async () => {
  const some = (length: number, blocks: boolean) => Array.from({ length }, () => ({ payload: { blocks } }))
  // Quick ones first, so that the worker claims ahead of need; then those that hold up what it holds ready.
  await bed.engine.submitMany(handled, [...some(2_000, false), ...some(1_000, true)])
  const logged: string[] = []
  const log = (_fields: object, message: string) => void logged.push(message)
  const engine = await bed.open({ logger: { info: log, warn: log, error: log } })
  const stop = new AbortController()
  const worked = engine.work({ concurrency: 5, signal: stop.signal })
  const ready = async () =>
    (await bed.engine.list({ status: 'running', limit: 1_000 })).filter(({ jobId }) => !begun.has(jobId))
  await expect.poll(async () => (await ready()).length, { timeout: 20_000 }).toBeGreaterThan(0)
  await expect.poll(() => begun.size).toBe(2_005)
  const cancelled = (await ready())[0]?.jobId ?? ''
  await bed.engine.cancel(cancelled)
  // Cancels are heard in order: when a handler hears of this one, the worker knows of the first.
  const cancelledLater = [...begun].at(-1) ?? ''
  await bed.engine.cancel(cancelledLater)
  await expect.poll(() => told.has(cancelledLater), { timeout: 20_000 }).toBe(true)
  letGo()
  await expect.poll(() => bed.engine.list({ status: 'pending', limit: 1 }), { timeout: 20_000 }).toEqual([])
  await expect.poll(() => bed.engine.list({ status: 'running', limit: 1 }), { timeout: 20_000 }).toEqual([])
  stop.abort()
  await worked
  expect(begun.has(cancelled)).toBe(false)
  expect(begun.size).toBe(2_999)
  expect(logged).not.toContain('handler_outlived_grace') // nor does it keep its place
})
