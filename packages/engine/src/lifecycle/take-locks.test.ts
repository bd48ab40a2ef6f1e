import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { claimOne, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import type { Engine } from '../engine.ts'
import { PermanentError } from '../errors.ts'
import { operation } from '../operation.ts'
import { child, defer } from './defer.ts'

const polite = operation('polite', {
  payload: z.object({ table: z.string() }),
  lock: ({ table }) => `table:${table}`,
  onLocked: 'wait',
  run: async () => null,
})

let bed: Bed
let engine: Engine
beforeAll(async () => {
  bed = await openBed({ operations: [work, polite] })
  engine = bed.engine
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const waiting = { lockKey: 'l', onLocked: 'wait' } as const
const inLine = () => submitted(engine.submit(work, {}, waiting))
const holderOf = async () =>
  (await bed.query<{ id: string }>(`select replace(job_id::text, '-', '') as id from fencepost.resource_locks`))[0]?.id
const events = async (jobId: string) => (await engine.events(jobId)).map(({ event }) => event)

describe('a job that waits for its lock', () => {
  test('is pending and due as it was submitted, and nobody can claim it', async () => {
    const holder = await inLine()
    const runAfter = '2020-01-01T00:00:00.000000Z'
    const answer = await engine.submit(work, {}, { ...waiting, runAfter })
    if (!answer.submitted) throw new Error('not submitted')
    expect(answer.waitsForLock).toBe(true)
    expect(await engine.get(answer.jobId)).toMatchObject({ status: 'pending', runAfter, lockKey: 'l' })
    expect(await engine.claimJob(answer.jobId)).toEqual({ claimed: false })
    expect((await engine.claim({ limit: 5 })).map(({ jobId }) => jobId)).toEqual([holder])
    const queued = await bed.query('select from fencepost.job_queue where claimed_at is null and visible_at <= now()')
    expect(queued).toHaveLength(0)
  })

  test('gets it first come, first served, whatever its priority', async () => {
    const [one, two, three] = [await inLine(), await inLine(), await inLine()]
    const urgent = await submitted(engine.submit(work, {}, { ...waiting, priority: -10 }))
    const order: string[] = []
    for (let nth = 0; nth < 4; nth += 1) {
      const attempts = await engine.claim({ limit: 5 })
      expect(attempts).toHaveLength(1)
      order.push(attempts[0]?.jobId ?? '')
      expect(await holderOf()).toBe(attempts[0]?.jobId)
      if (attempts[0] !== undefined) await engine.complete(attempts[0], null)
    }
    expect(order).toEqual([one, two, three, urgent])
    expect(await holderOf()).toBeUndefined()
    expect(await events(two)).toEqual([
      'job.submitted',
      'job.lock_awaited',
      'job.lock_acquired',
      'job.started',
      'job.completed',
    ])
    const [, awaited] = await engine.events(two)
    expect(awaited?.fields).toEqual({ lock_key: 'l', holder: one })
  })

  test('refuses nobody else: one that does not wait is told of the holder', async () => {
    const holder = await inLine()
    await inLine()
    expect(await engine.submit(work, {}, { lockKey: 'l' })).toMatchObject({ why: 'locked', holder: { jobId: holder } })
  })

  test('is told apart by explain, which names the holder and the place in line', async () => {
    const holder = await inLine()
    await inLine()
    const last = await inLine()
    const explained = await engine.explain(last)
    const reason = { reason: 'waiting_for_lock', lockKey: 'l', jobId: holder, ahead: 1 }
    expect(explained?.reasons).toContainEqual(reason)
    expect(explained?.message).toContain(`the lock l, that job ${holder} holds. 1 jobs are in line before it.`)
  })

  test('leaves the line when it is cancelled, and its record says when it was to run', async () => {
    await inLine()
    const holder = await claimOne(engine)
    const [gone, next] = [await inLine(), await inLine()]
    await engine.cancel(gone)
    expect(await holderOf()).toBe(holder.jobId)
    const { runAfter, submittedAt } = (await engine.get(gone)) ?? {}
    expect(runAfter).toBe(submittedAt)
    await engine.complete(holder, null)
    expect(await holderOf()).toBe(next)
  })

  test('keeps its dedup key meanwhile', async () => {
    await inLine()
    const jobId = await submitted(engine.submit(work, {}, { ...waiting, dedupKey: 'd' }))
    const again = await engine.submit(work, {}, { ...waiting, dedupKey: 'd' })
    expect(again).toMatchObject({ why: 'duplicate', holder: { jobId } })
  })

  test('is not claimed before its time when it has the lock', async () => {
    const holder = await inLine()
    const later = await submitted(engine.submit(work, {}, { ...waiting, delayMs: 60_000 }))
    await engine.cancel(holder)
    expect([await holderOf(), await engine.claim()]).toEqual([later, []])
    await bed.advance(61_000)
    expect((await claimOne(engine)).jobId).toBe(later)
  })

  test('takes its slot when it has both', async () => {
    const holder = await submitted(engine.submit(work, {}, { ...waiting, slotKey: 's' }))
    const next = await submitted(engine.submit(work, {}, { ...waiting, slotKey: 's' }))
    await engine.complete(await claimOne(engine), null)
    expect((await engine.get(holder))?.status).toBe('completed')
    expect((await claimOne(engine)).jobId).toBe(next)
  })
})

describe('the lock is handed over when its holder', () => {
  const cases: Record<string, (engine: Engine) => Promise<unknown>> = {
    completes: async () => engine.complete(await claimOne(engine), null),
    fails: async () => engine.fail(await claimOne(engine), new PermanentError('for good')),
    'is cancelled before it begins': async () => engine.cancel((await holderOf()) ?? ''),
    'is cancelled, and its worker lets go': async () => {
      const attempt = await claimOne(engine)
      await engine.cancel(attempt.jobId)
      expect(await holderOf()).toBe(attempt.jobId)
      await engine.complete(attempt, null)
    },
    'is cancelled, and its worker has died': async () => {
      const attempt = await claimOne(engine)
      await engine.cancel(attempt.jobId)
      await bed.advance(31_000)
      await engine.sweep()
    },
    'is cancelled, its worker has died, and somebody else asks for the lock': async () => {
      const attempt = await claimOne(engine)
      await engine.cancel(attempt.jobId)
      await bed.advance(31_000)
      expect(await engine.submit(work, {}, { lockKey: 'l' })).toMatchObject({ why: 'locked' })
    },
    'spends its last attempt in silence': async () => {
      for (let nth = 0; nth < 3; nth += 1) {
        await claimOne(engine)
        await bed.advance(31_000)
        await engine.sweep()
      }
    },
    'has its last child end': async () => {
      await engine.complete(await claimOne(engine), defer([child(work, {})]))
      await engine.complete(await claimOne(engine), null)
    },
  }
  test.each(Object.entries(cases))('%s', async (_, end) => {
    const holder = await inLine()
    const next = await inLine()
    await end(engine)
    expect((await engine.get(holder))?.completedAt).toBeDefined()
    expect(await holderOf()).toBe(next)
    expect((await claimOne(engine)).jobId).toBe(next)
  })

  test.each([
    ['is retried', (e: Engine) => claimOne(e).then((attempt) => e.fail(attempt, new Error('once')))],
    ['is given back', (e: Engine) => claimOne(e).then((attempt) => e.release(attempt, 'stopping'))],
    ['waits for its children', (e: Engine) => claimOne(e).then((one) => e.complete(one, defer([child(work, {})])))],
  ])('but not when it %s', async (_, act) => {
    const holder = await inLine()
    await inLine()
    await act(engine)
    expect(await holderOf()).toBe(holder)
  })
})

describe('many at once', () => {
  test('of one batch wait behind each other, and an operation may say that its jobs wait', async () => {
    const payloads = ['a', 'b', 'a', 'a'].map((table) => ({ payload: { table } }))
    const answers = await engine.submitMany(polite, payloads)
    expect(answers.map((answer) => answer.submitted && answer.waitsForLock === true)).toEqual([
      false,
      false,
      true,
      true,
    ])
    const refused = await engine.submitMany(polite, [{ payload: { table: 'a' }, options: { onLocked: 'refuse' } }])
    expect(refused).toMatchObject([{ why: 'locked' }])
    expect(await engine.claim({ limit: 10 })).toHaveLength(2)
  })

  test('whose first is kept out by its dedup key pass the lock to the next', async () => {
    await submitted(engine.submit(work, {}, { dedupKey: 'd' }))
    const answers = await engine.submitMany(work, [
      { payload: {}, options: { ...waiting, dedupKey: 'd' } },
      { payload: {}, options: waiting },
    ])
    expect(answers[0]).toMatchObject({ why: 'duplicate' })
    expect(await holderOf()).toBe(answers[1]?.submitted ? answers[1].jobId : '')
  })
})

test('a chained job whose lock is held waits for it instead of failing', async () => {
  const holder = await inLine()
  const chaining = await submitted(engine.submit(work, {}))
  const [attempt] = await engine.claimJobs([chaining])
  attempt?.chain(work, {}, waiting)
  if (attempt !== undefined) await engine.complete(attempt, null)
  const chained = (await engine.pipeline(chaining))?.jobs.find(({ jobId }) => jobId !== chaining)
  expect(chained).toMatchObject({ status: 'pending', lockKey: 'l' })
  await engine.cancel(holder)
  expect(await holderOf()).toBe(chained?.jobId)
})

test('a sleeping worker is woken for the job that gets the lock', async () => {
  const stop = new AbortController()
  const holder = await inLine()
  const next = await inLine()
  const attempt = await claimOne(engine)
  const other = await bed.open({ operations: [work] })
  const worked = other.work({ signal: stop.signal, pollMs: 600_000 })
  const warm = await submitted(engine.submit(work, {}))
  await expect.poll(async () => (await engine.get(warm))?.status, { timeout: 20_000 }).toBe('completed')
  await engine.complete(attempt, null)
  await expect.poll(async () => (await engine.get(next))?.status, { timeout: 20_000 }).toBe('completed')
  expect((await engine.get(holder))?.status).toBe('completed')
  stop.abort()
  await worked
})

test('an unknown way to deal with a held lock is refused', async () => {
  const onLocked = 'queue' as 'wait'
  await expect(engine.submit(work, {}, { lockKey: 'l', onLocked })).rejects.toMatchObject({ code: 'options_invalid' })
})
