import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { operation } from '../operation.ts'

const slow = operation('slow', { keys: 'caller', payload: z.looseObject({}), leaseMs: 120_000, run: async () => null })

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [work, slow] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

describe('claim', () => {
  test('goes by priority, then due time, then submission', async () => {
    const payload = (n: number) => ({ n })
    await bed.engine.submit(work, payload(6), { priority: 5 })
    await bed.engine.submit(work, payload(4))
    await bed.engine.submit(work, payload(5))
    await bed.engine.submit(work, payload(2), { priority: -1, delayMs: 2000 })
    await bed.engine.submit(work, payload(1), { priority: -1, delayMs: 1000 })
    await bed.engine.submit(work, payload(3), { priority: -1, delayMs: 10 })
    await bed.advance(3000)
    const order = (await bed.engine.claim({ limit: 10 })).map(({ claimed }) => (claimed.payload as { n: number }).n)
    expect(order).toEqual([3, 1, 2, 4, 5, 6])
  })

  test('goes by the same order across operations and slots', async () => {
    const jobIds = [
      await submitted(bed.engine.submit(slow, {})),
      await submitted(bed.engine.submit(work, {}, { slotKey: 's' })),
      await submitted(bed.engine.submit(work, {})),
      await submitted(bed.engine.submit(slow, {}, { slotKey: 't' })),
      await submitted(bed.engine.submit(slow, {})),
    ]
    for (const some of [jobIds.slice(0, 3), jobIds.slice(3)]) {
      expect((await bed.engine.claim({ limit: 3 })).map(({ jobId }) => jobId)).toEqual(some)
    }
  })

  test('finds plain jobs behind many jobs of one slot, and one of the slot', async () => {
    await bed.engine.submitMany(
      work,
      Array.from({ length: 40 }, () => ({ payload: {}, options: { slotKey: 's' } })),
    )
    await bed.engine.submitMany(
      work,
      Array.from({ length: 20 }, () => ({ payload: {} })),
    )
    const slots = async () => (await bed.engine.claim({ limit: 10 })).map(({ claimed }) => claimed.slotKey)
    expect(await slots()).toEqual(['s', ...Array.from({ length: 9 }, () => undefined)])
    expect(await slots()).toEqual(Array.from({ length: 10 }, () => undefined))
  })

  test('finds jobs of free slots behind more jobs of busy slots than it was asked for', async () => {
    for (const slotKey of ['b', 'c']) {
      await bed.engine.submitMany(
        work,
        Array.from({ length: 20 }, () => ({ payload: {}, options: { slotKey } })),
      )
    }
    expect(await bed.engine.claim({ limit: 5 })).toHaveLength(2)
    const free = ['a', 'bb', 'd']
    for (const slotKey of free) await bed.engine.submit(work, {}, { slotKey })
    const found = await bed.engine.claim({ limit: 5 })
    expect(found.map(({ claimed }) => claimed.slotKey)).toEqual(free)
    expect(await bed.engine.claim({ limit: 5 })).toEqual([])
  })

  test('takes only its queue and its operations', async () => {
    await bed.engine.submit(work, {}, { queue: 'other' })
    const jobId = await submitted(bed.engine.submit(slow, {}))
    expect(await bed.engine.claim({ operations: ['work'] })).toEqual([])
    const [attempt] = await bed.engine.claim()
    expect(attempt?.jobId).toBe(jobId)
    expect(await bed.engine.claim({ queue: 'other' })).toHaveLength(1)
  })

  test('gives each operation its own lease', async () => {
    await bed.engine.submit(work, {})
    await bed.engine.submit(slow, {})
    await bed.engine.claim({ limit: 2 })
    const rows = await bed.query<{ operation: string; seconds: number }>(
      `select operation, extract(epoch from lease_until - locked_at)::integer as seconds from fencepost.jobs`,
    )
    expect(Object.fromEntries(rows.map(({ operation: name, seconds }) => [name, seconds]))).toEqual({
      work: 30,
      slow: 120,
    })
  })

  test('draws a fence of its own for every claim, even of the same job by the same process', async () => {
    await submitted(bed.engine.submit(work, {}, { maxAttempts: 10 }))
    const fences = new Set<string>()
    for (let n = 0; n < 5; n += 1) {
      const [attempt] = await bed.engine.claim()
      if (attempt !== undefined) {
        fences.add(attempt.attemptId)
        await bed.engine.release(attempt, 'again')
      }
    }
    expect(fences.size).toBe(5)
  })

  test('of one slot takes one job, and the next when that has ended', async () => {
    const first = await submitted(bed.engine.submit(work, { n: 1 }, { slotKey: 's' }))
    const second = await submitted(bed.engine.submit(work, { n: 2 }, { slotKey: 's' }))
    await submitted(bed.engine.submit(work, { n: 3 }))
    const [one, free] = await bed.engine.claim({ limit: 10 })
    expect([one?.jobId, free?.claimed.payload]).toEqual([first, { n: 3 }])
    expect(await bed.engine.get(first)).toMatchObject({ isCurrent: true })
    expect(await bed.engine.claimJob(second)).toEqual({ claimed: false })
    if (one !== undefined) await bed.engine.complete(one)
    expect(await bed.engine.get(first)).toMatchObject({ isCurrent: true })
    const [two] = await bed.engine.claim({ limit: 10 })
    expect(two?.jobId).toBe(second)
    expect(await bed.engine.get(first)).toMatchObject({ isCurrent: false })
    expect(await bed.engine.get(second)).toMatchObject({ isCurrent: true })
  })

  test('of a slot takes nothing however long the job in it is renewed', async () => {
    await submitted(bed.engine.submit(work, {}, { slotKey: 's' }))
    await submitted(bed.engine.submit(work, {}, { slotKey: 's' }))
    const attempts = await bed.engine.claim({ limit: 10 })
    for (let n = 0; n < 3; n += 1) {
      await bed.advance(20_000)
      expect((await bed.engine.renew(attempts)).lost).toEqual([])
      expect(await bed.engine.claim({ limit: 10 })).toEqual([])
    }
  })

  test('by id takes a job that is due and free, and no other', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const future = await submitted(bed.engine.submit(work, {}, { delayMs: 60_000 }))
    expect(await bed.engine.claimJob(future)).toEqual({ claimed: false })
    const answer = await bed.engine.claimJob(jobId)
    expect(answer).toMatchObject({ claimed: true })
    expect(await bed.engine.claimJob(jobId)).toEqual({ claimed: false })
    if (answer.claimed) await bed.engine.complete(answer.attempt)
    expect(await bed.engine.claimJob(jobId)).toEqual({ claimed: false })
    expect(await bed.engine.claimJob('0'.repeat(32))).toEqual({ claimed: false })
  })

  test('progress is a heap-only update, because no index holds it', async () => {
    // So few that all versions of their rows have room on one page, whatever keeps the old ones from being removed.
    await bed.query('truncate fencepost.live_jobs')
    await bed.engine.submitMany(work, [{ payload: {} }, { payload: {} }, { payload: {} }])
    const hotUpdates = async () => {
      const [row] = await bed.query<{ hot: string }>(
        `select n_tup_hot_upd as hot from pg_stat_user_tables where relid = 'fencepost.live_jobs'::regclass`,
      )
      return Number(row?.hot)
    }
    const before = await hotUpdates()
    const engine = await bed.open()
    for (const attempt of await engine.claim({ limit: 3 })) {
      for (const nth of [1, 2]) expect(await attempt.progress(nth)).toMatchObject({ written: true })
    }
    await engine.close() // a session that ends hands in its counters
    await expect.poll(hotUpdates, { timeout: 10_000 }).toBe(before + 2 * 3)
  })
})
