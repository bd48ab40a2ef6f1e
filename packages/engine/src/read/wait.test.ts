import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import { defer } from '../lifecycle/defer.ts'
import { operation } from '../operation.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../../test/bed.ts'

const sized = operation('sized', {
  payload: z.looseObject({ bytes: z.unknown().optional() }),
  result: z.object({ bytes: z.number(), unit: z.string().default('B') }),
  run: async ({ payload }) => ({ bytes: payload.bytes as number, more: 'left out' }),
})

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [work, sized] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

describe('a wait', () => {
  test('resolves when the job ends, however it ends', async () => {
    const ids = await Promise.all([0, 1, 2].map(() => submitted(bed.engine.submit(work, {}, { maxAttempts: 1 }))))
    const waits = ids.map((jobId) => bed.engine.wait(jobId))
    const attempts = await bed.engine.claim({ limit: 2 })
    for (const [nth, attempt] of attempts.entries())
      await (nth === 0 ? bed.engine.complete(attempt, { n: 1 }) : bed.engine.fail(attempt, new Error('no')))
    await bed.engine.cancel(ids[2] as string)
    const ended = await Promise.all(waits)
    expect(ended).toMatchObject([
      { ended: true, job: { status: 'completed', result: { n: 1 } } },
      { ended: true, job: { status: 'failed', result: null } },
      { ended: true, job: { status: 'cancelled' } },
    ])
  })

  test('for a job that has ended, that is not there or that is deleted answers at once', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await bed.engine.complete(await claimOne(bed.engine), 1)
    expect(await bed.engine.wait(jobId)).toMatchObject({ ended: true, job: { result: 1 } })
    await bed.engine.delete(jobId)
    expect(await bed.engine.wait(jobId)).toEqual({ ended: false, why: 'not_found' })
    expect(await bed.engine.wait('0'.repeat(32))).toEqual({ ended: false, why: 'not_found' })
  })

  test('ends after its timeout, or when its signal fires', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    expect(await bed.engine.wait(jobId, { timeoutMs: 1 })).toEqual({ ended: false, why: 'timeout' })
    const stop = new AbortController()
    const waiting = bed.engine.wait(jobId, { signal: stop.signal })
    stop.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(bed.engine.wait(jobId, { signal: stop.signal })).rejects.toThrow('enough')
  })

  test('shares its connection with all others', async () => {
    const other = await bed.open({ maxConnections: 2 })
    const submissions = await bed.engine.submitMany(
      work,
      Array.from({ length: 50 }, () => ({ payload: {} })),
    )
    const ids = submissions.flatMap((answer) => (answer.submitted ? answer.jobId : []))
    const waits = ids.map((jobId) => other.wait(jobId))
    const listening = `select from pg_stat_activity
                        where datname = current_database() and application_name = 'fencepost listen' and state = 'idle'`
    await expect.poll(async () => (await bed.query(listening)).length).toBeGreaterThan(0)
    const listeners = (await bed.query(listening)).length
    expect(listeners).toBeLessThanOrEqual(2) // of this engine, and of the one that waited before
    for (const attempt of await bed.engine.claim({ limit: 50 })) await bed.engine.complete(attempt, null)
    expect((await Promise.all(waits)).every(({ ended }) => ended)).toBe(true)
    await other.close()
  })

  test('that begins while the job is ending finds it ended', async () => {
    const gate = new Gate()
    const other = await bed.open({}, gate)
    const jobId = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(bed.engine)
    // It has seen the job running, and does not listen yet.
    const stop = gate.stopAt('wait')
    const waiting = other.wait(jobId)
    await stop.reached
    await bed.engine.complete(attempt, 'meanwhile')
    stop.go()
    expect(await waiting).toMatchObject({ ended: true, job: { result: 'meanwhile' } })
  })

  test('is refused when the engine is closed', async () => {
    const gate = new Gate()
    const other = await bed.open({}, gate)
    const jobId = await submitted(bed.engine.submit(work, {}))
    const stop = gate.stopAt('wait')
    const waiting = expect(other.wait(jobId)).rejects.toMatchObject({ code: 'engine_closed' })
    await stop.reached
    stop.go()
    await other.close()
    await waiting
  })
})

describe('a result with a schema', () => {
  test('is stored as the schema reads it, and waited for with its type', async () => {
    const jobId = await submitted(bed.engine.submit(sized, { bytes: 7 }))
    await bed.engine.run(await claimOne(bed.engine))
    const answer = await bed.engine.wait(jobId, { operation: sized })
    if (!answer.ended) throw new Error('not ended')
    expectTypeOf(answer.job.result).toEqualTypeOf<{ bytes: number; unit: string } | null>()
    expect(answer.job.result).toEqual({ bytes: 7, unit: 'B' })
    await expect(bed.engine.wait(jobId, { operation: work })).rejects.toMatchObject({ code: 'options_invalid' })
  })

  test('that does not fit fails the job for good, and says where', async () => {
    const jobId = await submitted(bed.engine.submit(sized, { bytes: 'many' }))
    await bed.engine.run(await claimOne(bed.engine))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'result_invalid', attempts: 1 })
    expect((await bed.engine.get(jobId))?.error).toContain('The result of operation sized is not valid at bytes')
  })

  test('is checked in attempt.complete(), by engine.complete() and in a deferral', async () => {
    await submitted(bed.engine.submit(sized, {}))
    const attempt = await claimOne(bed.engine)
    await expect(attempt.complete(async () => ({ bytes: 'x' }))).rejects.toMatchObject({ code: 'result_invalid' })
    await expect(bed.engine.complete(attempt, { bytes: 'x' })).rejects.toMatchObject({ code: 'result_invalid' })
    const deferred = defer([], { result: { bytes: 'x' } })
    await expect(bed.engine.complete(attempt, deferred)).rejects.toMatchObject({ code: 'result_invalid' })
    expect(await bed.engine.complete(attempt, { bytes: 1 })).toEqual({ settled: true })
  })

  test('types what the handler returns', () => {
    const payload = z.object({})
    const result = z.object({ bytes: z.number() })
    operation('right', { payload, result, run: async () => ({ bytes: 1 }) })
    operation('deferring', { payload, result, run: async () => defer([]) })
    // @ts-expect-error a string is not a number
    operation('wrong', { payload, result, run: async () => ({ bytes: '1' }) })
    expectTypeOf(operation('any', { payload, run: async () => 1 })['~result']).toEqualTypeOf<unknown>()
  })
})
