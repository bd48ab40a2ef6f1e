import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { claimOne, openBed, work, type Bed } from '../../test/bed.ts'
import { operation } from '../operation.ts'

const locked = operation('locked', { payload: z.looseObject({}), lock: () => 'the-lock', run: async () => null })
const strict = operation('strict', { payload: z.object({ n: z.number() }), run: async () => null })

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [work, locked, strict] })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const minute = 60_000
const every = (everyMs: number) => ({ everyMs })
const due = async () => (await bed.engine.schedules.submitDue()).jobIds
const jobs = async () => bed.engine.list({ limit: 200 })

describe('a schedule', () => {
  test('submits one job for each due time, which has that time as its run_after', async () => {
    const made = await bed.engine.schedules.put('nightly', work, { n: 1 }, { cron: '0 * * * *', by: 'ops' })
    expect(await due()).toEqual([])
    await bed.advance(60 * minute)
    const [jobId] = await due()
    expect(await due()).toEqual([])
    expect(await jobs()).toMatchObject([{ jobId, operation: 'work', payload: { n: 1 }, status: 'pending' }])
    const job = await bed.engine.get(jobId as string)
    expect(Date.parse(job?.runAfter ?? '')).toBe(Date.parse(made.nextTimes[0] as string))
    expect(await bed.query('select submitted_by from fencepost.jobs')).toEqual([{ submitted_by: 'schedule nightly' }])
    expect(await bed.engine.schedules.get('nightly')).toMatchObject({
      lastOutcome: 'submitted',
      lastJobId: jobId,
      lastDueAt: job?.runAfter,
      updatedBy: 'ops',
    })
  })

  test('submits once when many processes look at the same time', async () => {
    const engines = await Promise.all(Array.from({ length: 4 }, () => bed.open()))
    await bed.engine.schedules.put('a', work, {}, { ...every(minute), overlap: 'allow' })
    await bed.engine.schedules.put('b', work, {}, { ...every(minute), overlap: 'allow' })
    await bed.advance(minute)
    await Promise.all(engines.map((engine) => engine.schedules.submitDue()))
    expect(await jobs()).toHaveLength(2)
  })

  test('that another process is submitting for is passed over, and not submitted for twice', async () => {
    let reached = () => {}
    let letGo = () => {}
    const inserting = new Promise<void>((resolve) => (reached = resolve))
    const gate = new Promise<void>((resolve) => (letGo = resolve))
    const slow = await bed.open(
      {},
      {
        pausePoint: async ({ statement }) => {
          if (statement !== 'schedules.note') return
          reached()
          await gate
        },
      },
    )
    await bed.engine.schedules.put('a', work, {}, every(minute))
    await bed.advance(minute)
    const first = slow.schedules.submitDue()
    await inserting // its job is inserted, and not committed
    expect(await bed.engine.schedules.submitDue()).toEqual({ schedules: 0, jobIds: [] })
    letGo()
    expect((await first).jobIds).toHaveLength(1)
    expect(await due()).toEqual([])
  })

  test('keeps its next time when it is put again unchanged, and counts from now when its rule changes', async () => {
    const { nextTimes } = await bed.engine.schedules.put('a', work, {}, every(10 * minute))
    await bed.advance(4 * minute)
    const again = await bed.engine.schedules.put('a', work, { n: 2 }, every(10 * minute))
    expect(again).toMatchObject({ nextTimes, payload: { n: 2 } })
    const changed = await bed.engine.schedules.put('a', work, {}, every(9 * minute))
    expect(Date.parse(changed.nextTimes[0] as string)).toBeGreaterThan(Date.parse(nextTimes[0] as string))
  })

  test('that is paused submits nothing, and does not catch up when it is resumed', async () => {
    await bed.engine.schedules.put('a', work, {}, { ...every(minute), catchUp: 'all', overlap: 'allow' })
    expect(await bed.engine.schedules.pause('a', { by: 'ops' })).toMatchObject({ nextTimes: [], updatedBy: 'ops' })
    await bed.advance(10 * minute)
    expect(await due()).toEqual([])
    expect((await bed.engine.schedules.resume('a'))?.pausedAt).toBeUndefined()
    expect(await due()).toEqual([])
    await bed.advance(minute)
    expect(await due()).toHaveLength(1)
    expect(await bed.engine.schedules.pause('missing')).toBeUndefined()
  })

  test('that is deleted submits nothing any more, and its jobs stay', async () => {
    await bed.engine.schedules.put('a', work, {}, every(minute))
    await bed.advance(minute)
    await due()
    expect(await bed.engine.schedules.delete('a')).toBe(true)
    expect(await bed.engine.schedules.delete('a')).toBe(false)
    await bed.advance(minute)
    expect(await due()).toEqual([])
    expect(await jobs()).toHaveLength(1)
  })

  test('waits out a drain, and is due when it ends', async () => {
    await bed.engine.schedules.put('a', work, {}, every(minute))
    await bed.advance(minute)
    await bed.engine.setDrain('submissions')
    expect(await due()).toEqual([])
    await bed.engine.setDrain('off')
    expect(await due()).toHaveLength(1)
  })

  test('is left to processes that have its operation', async () => {
    await bed.engine.schedules.put('a', work, {}, every(minute))
    await bed.advance(minute)
    const other = await bed.open({ operations: [strict] })
    expect((await other.schedules.submitDue()).schedules).toBe(0)
    expect(await due()).toHaveLength(1)
  })

  test('of a worker is submitted and run when its time comes', async () => {
    const ran: unknown[] = []
    const quick = operation('quick', { payload: z.looseObject({}), run: async ({ payload }) => ran.push(payload) })
    const engine = await bed.open({ operations: [quick] })
    const controller = new AbortController()
    const worked = engine.work({ signal: controller.signal, pollMs: 3_600_000 })
    await engine.schedules.put('often', quick, { n: 1 }, every(1_000))
    await expect.poll(() => ran.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(2)
    controller.abort()
    await worked
  })
})

describe('missed due times', () => {
  const missed = async (catchUp: 'once' | 'all' | 'skip') => {
    await bed.engine.schedules.put('a', work, {}, { ...every(minute), catchUp, overlap: 'allow' })
    await bed.advance(3 * minute)
    return due()
  }

  test('are caught up once', async () => {
    expect(await missed('once')).toHaveLength(1)
    expect(await due()).toEqual([])
  })

  test('are caught up one by one, each with its own time', async () => {
    expect(await missed('all')).toHaveLength(3)
    const times = (await jobs()).map(({ runAfter }) => Date.parse(runAfter))
    expect(times.map((time) => (times[0] as number) - time)).toEqual([0, minute, 2 * minute])
  })

  test('more than fit one transaction are all caught up', async () => {
    await bed.engine.schedules.put('a', work, {}, { ...every(1_000), catchUp: 'all', overlap: 'allow' })
    await bed.advance(150_500)
    expect(await due()).toHaveLength(150)
  })

  test('are left out, and the next one is not', async () => {
    await bed.engine.schedules.put('a', work, {}, { ...every(10 * minute), catchUp: 'skip' })
    await bed.advance(12 * minute)
    expect(await due()).toEqual([])
    expect(await bed.engine.schedules.get('a')).toMatchObject({ lastOutcome: 'missed' })
    await bed.advance(8 * minute)
    expect(await due()).toHaveLength(1)
  })
})

describe('while the job before has not ended', () => {
  const twice = async (overlap: 'allow' | 'skip' | 'queue') => {
    await bed.engine.schedules.put('a', work, {}, { ...every(minute), overlap })
    await bed.advance(minute)
    await due()
    const first = await claimOne(bed.engine, { leaseMs: 60 * minute })
    await bed.advance(minute)
    return { first, second: await due() }
  }

  test('another is submitted and runs, where overlap is allowed', async () => {
    const { second } = await twice('allow')
    expect((await claimOne(bed.engine)).jobId).toBe(second[0])
  })

  test('none is submitted, where overlap is skipped, until it has ended', async () => {
    const { first, second } = await twice('skip')
    expect(second).toEqual([])
    expect(await bed.engine.schedules.get('a')).toMatchObject({ lastOutcome: 'overlapped', lastJobId: first.jobId })
    await bed.engine.complete(first)
    await bed.advance(minute)
    expect(await due()).toHaveLength(1)
  })

  test('another is submitted and waits, where overlap is queued', async () => {
    const { first, second } = await twice('queue')
    expect(second).toHaveLength(1)
    expect(await bed.engine.claim()).toEqual([])
    await bed.engine.complete(first)
    expect((await claimOne(bed.engine)).jobId).toBe(second[0])
  })
})

describe('what cannot be submitted', () => {
  test('for a lock that is held is noted, and does not stop the schedule', async () => {
    const holder = await bed.engine.submit(locked, {})
    await bed.engine.schedules.put('a', locked, {}, every(minute))
    await bed.advance(minute)
    expect(await due()).toEqual([])
    const jobId = holder.submitted ? holder.jobId : ''
    expect(await bed.engine.schedules.get('a')).toMatchObject({
      lastOutcome: 'locked',
      lastError: `Job ${jobId} is in the way.`,
    })
    await bed.engine.cancel(jobId)
    await bed.advance(minute)
    expect(await due()).toHaveLength(1)
  })

  test('for a payload that the operation takes no longer is noted, and stops no other schedule', async () => {
    await bed.engine.schedules.put('a', strict, { n: 1 }, every(minute))
    await bed.engine.schedules.put('b', work, {}, every(minute))
    await bed.query(`update fencepost.schedules set payload = '{}' where name = 'a'`)
    await bed.advance(minute)
    expect(await due()).toHaveLength(1)
    const { lastOutcome, lastError } = (await bed.engine.schedules.get('a')) ?? {}
    expect([lastOutcome, lastError]).toEqual(['invalid', expect.stringContaining('payload for operation strict')])
  })

  test.each([
    ['no rule', {}, 'schedule_invalid'],
    ['two rules', { cron: '* * * * *', everyMs: 1_000 }, 'schedule_invalid'],
    ['a zone without cron', { everyMs: 1_000, timeZone: 'UTC' }, 'schedule_invalid'],
    ['too short an interval', { everyMs: 10 }, 'number_invalid'],
    ['an unknown policy', { everyMs: 1_000, overlap: 'maybe' as 'skip' }, 'options_invalid'],
  ])('a schedule with %s is refused', async (_, options, code) => {
    await expect(bed.engine.schedules.put('a', work, {}, options)).rejects.toMatchObject({ code })
  })

  test('a name with spaces is refused', async () => {
    await expect(bed.engine.schedules.put('a b', work, {}, every(minute))).rejects.toThrow('not a name for a schedule')
  })
})

test('a schedule whose operation makes no key any more holds up no other', async () => {
  let broken = false
  const moody = operation('moody', {
    payload: z.looseObject({}),
    lock: () => {
      if (broken) throw new TypeError('no key today')
      return undefined
    },
    run: async () => null,
  })
  const engine = await bed.open({ operations: [moody, work] })
  await engine.schedules.put('a', moody, {}, every(minute))
  await engine.schedules.put('b', work, {}, every(minute))
  await bed.advance(minute)
  broken = true
  expect((await engine.schedules.submitDue()).jobIds).toHaveLength(1)
  expect(await engine.schedules.get('a')).toMatchObject({ lastOutcome: 'invalid', lastError: 'no key today' })
})

test('a schedule that Postgres refuses is passed over, and stays due', async () => {
  const failing = await bed.open(
    {},
    {
      pausePoint: async ({ statement }) => {
        if (statement === 'schedules.note' && fails.shift() === true) throw new Error('it does not work')
      },
    },
  )
  const fails = [true]
  await bed.engine.schedules.put('a', work, {}, every(minute))
  await bed.engine.schedules.put('b', work, {}, every(minute))
  await bed.advance(minute)
  expect((await failing.schedules.submitDue()).schedules).toBe(1)
  expect(await due()).toHaveLength(1)
  expect(await jobs()).toHaveLength(2)
})

test('a worker whose places are all taken submits for its schedules all the same', async () => {
  let letGo = () => {}
  const gate = new Promise<void>((resolve) => (letGo = resolve))
  const slow = operation('slow', { payload: z.looseObject({}), run: () => gate })
  const engine = await bed.open({ operations: [slow] })
  const controller = new AbortController()
  await engine.submit(slow, {})
  const worked = engine.work({ signal: controller.signal, concurrency: 1, pollMs: 100 })
  await expect.poll(() => bed.engine.list({ status: 'running' }), { timeout: 10_000 }).toHaveLength(1)
  await engine.schedules.put('often', slow, {}, { everyMs: 1_000, overlap: 'allow' })
  await expect.poll(() => bed.engine.list({ status: 'pending' }), { timeout: 20_000 }).not.toHaveLength(0)
  letGo()
  controller.abort()
  await worked
})

test('names that cannot be names are of no schedule', async () => {
  for (const name of ['', '\u0000', 'a b']) {
    expect(await bed.engine.schedules.get(name)).toBeUndefined()
    expect(await bed.engine.schedules.pause(name)).toBeUndefined()
    expect(await bed.engine.schedules.delete(name)).toBe(false)
  }
})
