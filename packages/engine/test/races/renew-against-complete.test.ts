import { afterAll, beforeAll, expect, test } from 'vitest'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
afterAll(() => bed.close())

test('a renewal that comes after the attempt’s own settlement is no stale write', async () => {
  const gate = new Gate()
  const warnings: string[] = []
  const note = (_: unknown, message: string) => warnings.push(message)
  const engine = await bed.open({ logger: { info() {}, warn: note, error: note } }, { pausePoint: gate.pausePoint })
  const jobId = await submitted(engine.submit(work, {}))
  const attempt = await claimOne(engine)
  const { reached, go } = gate.stopAt('renew')
  const renewed = engine.renew([attempt])
  await reached
  await engine.complete(attempt)
  go()
  await renewed
  expect(attempt.abortReason).toBeUndefined()
  expect(warnings).toEqual([])
  expect((await engine.events(jobId)).map(({ event }) => event)).not.toContain('job.fence_rejected')
})
