import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { claiming, claimingJob, completing, releasing } from './uncommitted.ts'

let bed: Bed
let other: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const submitInto = (slotKey: string, queue = 'default') => submitted(bed.engine.submit(work, {}, { slotKey, queue }))
const claimed = async (engine: Engine, jobId: string) => (await engine.claimJob(jobId)).claimed
const current = async () =>
  (await bed.query<{ job_id: string }>('select job_id from fencepost.jobs where is_current')).map(({ job_id: id }) =>
    id.replaceAll('-', ''),
  )

describe('two claims in one slot', () => {
  // The row of the slot is made by its first claim, and found there by every later one: both are raced for.
  describe.each(['a slot never used', 'a slot used before'])('%s', (which) => {
    let first: string
    let second: string
    beforeEach(async () => {
      if (which === 'a slot used before') {
        await submitInto('s')
        await bed.engine.complete(await claimOne(bed.engine))
      }
      first = await submitInto('s')
      second = await submitInto('s', 'other')
    })

    test('a second claim of the queue passes over a slot whose next job is being claimed', async () => {
      await submitInto('s')
      const held = await bed.hold(claiming())
      expect(held.value.map(({ jobId }) => jobId)).toEqual([first])
      expect(await other.claim()).toEqual([])
      await held.commit()
      expect(await current()).toEqual([first])
    })

    test('one of another queue waits for the first, and when that commits leaves its job pending and unharmed', async () => {
      const before = await bed.engine.get(second)
      const held = await bed.hold(claiming())
      const late = other.claim({ queue: 'other' })
      await bed.blocked()
      await held.commit()
      expect(await late).toEqual([])
      expect(await bed.engine.get(second)).toEqual(before)
      expect(await current()).toEqual([first])
    })

    test('one of another queue waits for the first, and when that rolls back claims its own job', async () => {
      const held = await bed.hold(claiming())
      const late = other.claim({ queue: 'other' })
      await bed.blocked()
      await held.rollback()
      expect((await late).map(({ jobId }) => jobId)).toEqual([second])
      expect(await bed.engine.get(first)).toMatchObject({ status: 'pending', attempts: 0, isCurrent: false })
      expect(await current()).toEqual([second])
    })

    test('a claim by id waits and loses in the same way', async () => {
      const held = await bed.hold(claimingJob(second))
      const late = other.claimJob(first)
      await bed.blocked()
      await held.commit()
      expect(await late).toEqual({ claimed: false })
      expect(await bed.engine.get(first)).toMatchObject({ status: 'pending', attempts: 0 })
    })

    test('a claim that lost one slot still brings what else it found', async () => {
      const free = await submitted(bed.engine.submit(work, {}, { queue: 'other' }))
      const held = await bed.hold(claiming())
      const late = other.claim({ limit: 10, queue: 'other' })
      await bed.blocked()
      await held.commit()
      expect((await late).map(({ jobId }) => jobId)).toEqual([free])
    })
  })

  test('one after the other: the next is claimable only once the first is settled', async () => {
    const first = await submitInto('s')
    const second = await submitInto('s')
    const attempt = await claimOne(bed.engine)
    expect(attempt.jobId).toBe(first)
    expect(await other.claim({ limit: 10 })).toEqual([])
    expect(await claimed(other, second)).toBe(false)
    await bed.engine.complete(attempt)
    expect(await current()).toEqual([first]) // current until the next one is claimed
    expect(await claimed(other, second)).toBe(true)
    expect(await current()).toEqual([second])
  })

  test('a batch that finds several jobs of one slot claims the first of them only', async () => {
    const inS = [await submitInto('s'), await submitInto('s'), await submitInto('s')]
    const inT = [await submitInto('t'), await submitInto('t')]
    const attempts = await bed.engine.claim({ limit: 10 })
    expect(attempts.map(({ jobId }) => jobId)).toEqual([inS[0], inT[0]])
    expect(await other.claim({ limit: 10 })).toEqual([])
  })

  test('batches that claim many slots at once run one job of each', async () => {
    for (let n = 0; n < 40; n += 1) await submitInto(`slot ${n % 8}`)
    const engines = [bed.engine, other, await bed.open(), await bed.open()]
    for (let left = 40; left > 0; left -= 8) {
      const attempts = (await Promise.all(engines.map((engine) => engine.claim({ limit: 20 })))).flat()
      expect(attempts).toHaveLength(8)
      expect(new Set(attempts.map(({ claimed: { slotKey } }) => slotKey)).size).toBe(8)
      await bed.engine.settleAll(
        attempts.map((attempt) => ({ attempt, outcome: { kind: 'completed', result: 'null', steps: [], chain: [] } })),
      )
    }
    expect(await bed.query('select from fencepost.live_jobs')).toEqual([])
  })
})

describe('a slot whose job is just leaving it', () => {
  test.each([
    ['completed', completing],
    ['released', releasing],
  ] as const)('a job that is being %s keeps the slot until that commits', async (_name, leaving) => {
    await submitInto('s')
    const attempt = await claimOne(bed.engine)
    const next = await submitInto('s')
    const held = await bed.hold(leaving(attempt))
    expect(await claimed(other, next)).toBe(false)
    await held.commit()
    expect(await claimed(other, next)).toBe(true)
  })

  test('a job that is renewed for longer than its first lease keeps the slot', async () => {
    await submitInto('s')
    const attempt = await claimOne(bed.engine)
    const next = await submitInto('s')
    for (let n = 0; n < 3; n += 1) {
      await bed.advance(20_000)
      expect(await bed.engine.renew([attempt])).toEqual({ lost: [] })
      expect(await other.claim()).toEqual([])
      expect(await claimed(other, next)).toBe(false)
    }
    expect(await bed.engine.complete(attempt)).toEqual({ settled: true })
    expect(await claimed(other, next)).toBe(true)
  })

  test('a parent that waits for its children keeps the slot until it is closed', async () => {
    await submitInto('s')
    const parent = await claimOne(bed.engine)
    await bed.engine.complete(parent, defer([child(work, {})]))
    const next = await submitInto('s')
    const [only] = await other.claim({ limit: 10 })
    if (only === undefined) throw new Error('nothing to claim')
    expect(only.claimed.parentJobId).toBe(parent.jobId)
    expect(await claimed(other, next)).toBe(false)
    await other.complete(only)
    expect(await claimed(other, next)).toBe(true)
  })
})

describe('a slot whose running job was cancelled', () => {
  test('opens for the next job when the worker lets go', async () => {
    await submitInto('s')
    const attempt = await claimOne(bed.engine)
    const next = await submitInto('s')
    await other.cancel(attempt.jobId)
    expect(await other.claim({ limit: 10 })).toEqual([])
    expect(await claimed(other, next)).toBe(false)
    await attempt.letGo()
    expect(await claimed(other, next)).toBe(true)
  })

  test('opens when the lease has lapsed, and letting go later does not open it again', async () => {
    await submitInto('s')
    const attempt = await claimOne(bed.engine)
    const next = await submitInto('s')
    const last = await submitInto('s')
    await other.cancel(attempt.jobId)
    await bed.advance(29_000)
    expect(await claimed(other, next)).toBe(false)
    await bed.advance(2000)
    expect(await claimed(other, next)).toBe(true)
    await attempt.letGo()
    expect(await claimed(other, last)).toBe(false)
  })

  test('stays closed while the cancelled attempt renews', async () => {
    await submitInto('s')
    const attempt = await claimOne(bed.engine)
    const next = await submitInto('s')
    await other.cancel(attempt.jobId)
    for (let n = 0; n < 3; n += 1) {
      await bed.advance(20_000)
      expect((await bed.engine.renew([attempt])).lost).toEqual([attempt])
      expect(await claimed(other, next)).toBe(false)
    }
    await attempt.letGo()
    expect(await claimed(other, next)).toBe(true)
  })
})
