import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { operation } from '../operation.ts'
import { claimPlain, type Place } from './claim-plain.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const other = operation('other', { keys: 'caller', payload: z.looseObject({}), run: async () => null })

const claimed = async (limit: number, from?: Place, operations = ['work']) => {
  const leases = Object.fromEntries(operations.map((name) => [name, 30_000]))
  const options = { queue: 'default', leases, limit, workerId: 'w', durable: false }
  const { claimed: jobs, last } = await claimPlain(bed.database, options, from)
  return { order: jobs.map(({ payload }) => (payload as { n: number }).n), last }
}

test('goes by due time, then submission', async () => {
  await bed.engine.submit(work, { n: 3 }, { delayMs: 2000 })
  await bed.engine.submit(work, { n: 1 })
  await bed.engine.submit(work, { n: 2 })
  await bed.engine.submit(work, { n: 4 }, { delayMs: 60_000 })
  await bed.advance(3000)
  expect((await claimed(10)).order).toEqual([1, 2, 3])
})

test('keeps to the most urgent priority, and leaves the rest to claim()', async () => {
  await bed.engine.submit(work, { n: 2 }, { priority: 1 })
  await bed.engine.submit(work, { n: 1 })
  expect((await claimed(10)).order).toEqual([1])
  expect((await claimed(10)).order).toEqual([2])
})

test('leaves jobs with a slot or a lock to claim(), which finds them', async () => {
  const slotted = await submitted(bed.engine.submit(work, { n: 1 }, { slotKey: 's' }))
  const locked = await submitted(bed.engine.submit(work, { n: 2 }, { lockKey: 'l' }))
  await bed.engine.submit(work, { n: 3 })
  expect((await claimed(10)).order).toEqual([3])
  expect((await bed.engine.claim({ limit: 10 })).map(({ jobId }) => jobId)).toEqual([slotted, locked])
})

test('leaves a job that may be started only once to claim(), which waits for the disk', async () => {
  const once = await submitted(bed.engine.submit(work, { n: 1 }, { maxAttempts: 1 }))
  await bed.engine.submit(work, { n: 2 })
  expect((await claimed(10)).order).toEqual([2])
  expect((await bed.engine.claim({ limit: 10 })).map(({ jobId }) => jobId)).toEqual([once])
})

test('leaves a job with a dedup key to claim(): a lost claim would let a second one of the key in', async () => {
  const keyed = await submitted(bed.engine.submit(work, { n: 1 }, { dedupKey: 'k' }))
  await bed.engine.submit(work, { n: 2 })
  expect((await claimed(10)).order).toEqual([2])
  expect((await bed.engine.claim({ limit: 10 })).map(({ jobId }) => jobId)).toEqual([keyed])
})

test('goes by the same order across operations, and no further than it was asked for', async () => {
  const both = await bed.open({ operations: [work, other] })
  for (const n of [1, 4]) await both.submit(other, { n })
  for (const n of [2, 3, 5]) await both.submit(work, { n })
  await bed.query(`update fencepost.live_jobs
                      set run_after = timestamptz '2026-01-01 00:00Z' + (payload ->> 'n')::integer * interval '1 ms'`)
  expect((await claimed(3, undefined, ['work', 'other'])).order).toEqual([1, 2, 3])
  expect((await claimed(3, undefined, ['work', 'other'])).order).toEqual([4, 5])
})

test('says of each job the fence that Postgres was given', async () => {
  await bed.engine.submitMany(work, [{ payload: { n: 1 } }, { payload: { n: 2 } }])
  const options = { queue: 'default', leases: { work: 30_000 }, limit: 2, workerId: 'w', durable: false }
  const { claimed: jobs } = await claimPlain(bed.database, options)
  for (const { jobId, attemptId } of jobs) expect(await bed.engine.get(jobId)).toMatchObject({ attemptId })
  expect(new Set(jobs.map(({ attemptId }) => attemptId)).size).toBe(2)
})

test('goes on from where the last one ended, and finds what came in before that when it begins anew', async () => {
  for (const n of [1, 2, 3, 4]) await bed.engine.submit(work, { n })
  const first = await claimed(2)
  expect(first.order).toEqual([1, 2])
  await bed.engine.submit(work, { n: 0 }, { runAfter: '2000-01-01T00:00:00Z' })
  const second = await claimed(1, first.last)
  expect(second.order).toEqual([3])
  expect((await claimed(10)).order).toEqual([0, 4])
})

test('claims nothing while claims are drained, nor what it has no handler for', async () => {
  await bed.engine.submit(work, { n: 1 })
  await bed.engine.setDrain('all')
  expect((await claimed(10)).order).toEqual([])
  await bed.engine.setDrain('off')
  const others = { queue: 'default', leases: { other: 30_000 }, limit: 1, workerId: 'w', durable: false }
  expect((await claimPlain(bed.database, others)).claimed).toEqual([])
  expect((await claimed(10)).order).toEqual([1])
})

test('two at once share the jobs between them', async () => {
  await bed.engine.submitMany(
    work,
    Array.from({ length: 100 }, (_, n) => ({ payload: { n } })),
  )
  const both = await Promise.all([claimed(60), claimed(60)])
  const all = both.flatMap(({ order }) => order).sort((a, b) => a - b)
  expect(all).toEqual([...new Set(all)])
  expect((await claimed(100)).order.length).toBe(100 - all.length)
})
