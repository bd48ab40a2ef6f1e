import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { claimOne, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import type { Attempt } from '../attempt/attempt.ts'
import type { EndedChild } from '../attempt/children.ts'
import type { Engine } from '../engine.ts'
import { PermanentError } from '../errors.ts'
import { operation } from '../operation.ts'
import { child, defer, type DeferOptions } from './defer.ts'

const table = operation('table', {
  payload: z.object({ table: z.string() }),
  lock: ({ table: name }) => `table:${name}`,
  run: async () => null,
})

const options = z.object({ tables: z.array(z.string()), defer: z.custom<DeferOptions>() })
let parts: string[] = []

const sum = operation('sum', {
  payload: options,
  keys: 'caller',
  run: async ({ payload, attempt }) => {
    await attempt.recordStep({ step: 'plan', success: true, result: payload.tables.length })
    return defer(
      payload.tables.map((name) => child(table, { table: name })),
      payload.defer,
    )
  },
  parts: {
    sumUp: async ({ attempt }) => {
      parts.push('sumUp')
      const statuses = (await attempt.children()).map(({ status }) => status)
      const [plan] = await attempt.steps()
      return { statuses, skipped: await attempt.skippedChildren(), plan: plan?.result }
    },
    again: async () => defer([child(table, { table: 'second' })], { then: 'sumUp' }),
  },
})

let bed: Bed
let engine: Engine
beforeAll(async () => {
  bed = await openBed({ operations: [work, table, sum] })
  engine = bed.engine
})
beforeEach(async () => {
  parts = []
  await bed.reset()
})
afterAll(() => bed.close())

async function start(tables: string[], how: DeferOptions, more: { lockKey?: string; maxAttempts?: number } = {}) {
  const jobId = await submitted(engine.submit(sum, { tables, defer: how }, more))
  await engine.run(await claimOne(engine, { operations: ['sum'] }))
  return jobId
}

/** Ends every child there is: those whose table is named fail. */
async function endChildren(failing: string[] = []): Promise<void> {
  for (const attempt of await engine.claim({ operations: ['table'], limit: 100 })) {
    const { table: name } = attempt.claimed.payload as { table: string }
    if (failing.includes(name)) await engine.fail(attempt, new PermanentError(`${name} is broken`))
    else await engine.complete(attempt, { table: name })
  }
}

const next = () => claimOne(engine, { operations: ['sum'] })
const nothing = async () => expect(await engine.claim({ operations: ['sum'] })).toEqual([])
const events = async (jobId: string) => (await engine.events(jobId)).map(({ event }) => event)

describe('the part that follows the children', () => {
  test('runs once they have ended, as an attempt of its own, and its result is that of the job', async () => {
    const jobId = await start(['a', 'b'], { then: 'sumUp' })
    await nothing()
    expect((await engine.explain(jobId))?.reasons).toEqual([
      { reason: 'waiting_for_children', ended: 0, total: 2, then: 'sumUp' },
    ])
    await endChildren()
    expect(await engine.get(jobId)).toMatchObject({ status: 'pending', operation: 'sum', attempts: 0 })
    const attempt = await next()
    expect(attempt.claimed).toMatchObject({ operation: 'sum', part: 'sumUp', attempts: 1 })
    await engine.run(attempt)
    const result = { statuses: ['completed', 'completed'], skipped: { count: 0, locks: [] }, plan: 2 }
    expect(await engine.get(jobId)).toMatchObject({
      status: 'completed',
      operation: 'sum',
      result,
      children: { total: 2, completed: 2, failed: 0 },
    })
    expect(await events(jobId)).toEqual([
      'job.submitted',
      'job.started',
      'job.deferred',
      'job.continued',
      'job.started',
      'job.completed',
    ])
  })

  test('does not run when the job fails for its children', async () => {
    const jobId = await start(['a', 'b'], { then: 'sumUp' })
    await endChildren(['b'])
    await nothing()
    expect(await engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'children_failed', operation: 'sum' })
  })

  test('runs whatever became of them with failWhen never, and reads their errors', async () => {
    const jobId = await start(['a', 'b', 'c'], { then: 'sumUp', failWhen: 'never' })
    await endChildren(['a', 'c'])
    const attempt = await next()
    const failed = await attempt.children({ status: 'failed' })
    expect(failed).toMatchObject([
      { operation: 'table', payload: { table: 'a' }, error: 'a is broken', errorCode: 'PermanentError' },
      { payload: { table: 'c' }, lockKey: 'table:c' },
    ])
    await engine.run(attempt)
    expect(await engine.get(jobId)).toMatchObject({
      status: 'completed',
      result: { statuses: ['failed', 'completed', 'failed'] },
    })
  })

  test('reads its children page by page', async () => {
    await start(['a', 'b', 'c', 'd', 'e'], { then: 'sumUp' })
    await endChildren()
    const attempt = await next()
    const pages: EndedChild[][] = []
    for (let after: string | undefined; ;) {
      const page = await attempt.children({ limit: 2, ...(after !== undefined && { after }) })
      if (page.length === 0) break
      pages.push(page)
      after = page.at(-1)?.jobId
    }
    expect(pages.map((page) => page.map(({ result }) => result))).toEqual([
      [{ table: 'a' }, { table: 'b' }],
      [{ table: 'c' }, { table: 'd' }],
      [{ table: 'e' }],
    ])
    await expect(attempt.children({ status: 'pending' as 'failed' })).rejects.toMatchObject({ code: 'options_invalid' })
  })

  test.each([
    ['an expiry', async () => bed.advance(31_000).then(() => engine.sweep())],
    ['an error', async (attempt: Attempt) => engine.fail(attempt, new Error('once')).then(() => bed.advance(60_000))],
    ['a release', async (attempt: Attempt) => engine.release(attempt, 'stopping')],
  ])('is what runs again after %s', async (_, end) => {
    const jobId = await start(['a'], { then: 'sumUp' })
    await endChildren()
    await end(await next())
    expect((await engine.get(jobId))?.status).toBe('pending')
    const again = await next()
    expect(again.claimed.part).toBe('sumUp')
    await engine.run(again)
    expect((await engine.get(jobId))?.status).toBe('completed')
    expect(await bed.query('select from fencepost.finished_jobs where operation = $1', ['table'])).toHaveLength(1)
  })

  test('has as many attempts as the job, counted from the first', async () => {
    const jobId = await start(['a'], { then: 'sumUp' }, { maxAttempts: 1 })
    await endChildren()
    const attempt = await next()
    expect(attempt.claimed).toMatchObject({ attempts: 1, maxAttempts: 1 })
    await engine.fail(attempt, new Error('the only one'))
    expect(await engine.get(jobId)).toMatchObject({ status: 'failed', operation: 'sum', attempts: 1 })
  })

  test('keeps the lock of the job until its end', async () => {
    const jobId = await start(['a'], { then: 'sumUp' }, { lockKey: 'all' })
    const waiting = await submitted(engine.submit(work, {}, { lockKey: 'all', onLocked: 'wait' }))
    await endChildren()
    expect(await engine.submit(work, {}, { lockKey: 'all' })).toMatchObject({ why: 'locked', holder: { jobId } })
    await engine.run(await next())
    expect((await claimOne(engine, { operations: ['work'] })).jobId).toBe(waiting)
  })

  test.each(['pending', 'running'])('can be cancelled while it is %s', async (status) => {
    const jobId = await start(['a'], { then: 'sumUp' })
    await endChildren()
    const attempt = status === 'running' ? await next() : undefined
    expect(await engine.cancel(jobId)).toMatchObject({ cancelled: true })
    expect(await engine.get(jobId)).toMatchObject({ status: 'cancelled', operation: 'sum' })
    if (attempt !== undefined) expect(await engine.run(attempt)).toMatchObject({ settled: false, why: 'fence_lost' })
    await nothing()
  })

  test('may defer again, and only the new children are judged', async () => {
    const jobId = await start(['a', 'b'], { then: 'again', failWhen: 'never' })
    await endChildren(['a'])
    await engine.run(await next())
    await endChildren()
    const attempt = await next()
    expect(attempt.claimed.part).toBe('sumUp')
    await engine.run(attempt)
    expect(await engine.get(jobId)).toMatchObject({
      status: 'completed',
      result: { statuses: ['failed', 'completed', 'completed'] },
      children: { total: 3, completed: 2, failed: 1 },
    })
  })

  test('runs at once where there are no children', async () => {
    const jobId = await start([], { then: 'sumUp' })
    await engine.run(await next())
    expect(await engine.get(jobId)).toMatchObject({ status: 'completed', result: { statuses: [], plan: 0 } })
  })

  test('is claimed only by those who have it', async () => {
    const before = operation('sum', { payload: options, run: async () => null })
    const older = await bed.open({ operations: [before] })
    const jobId = await start(['a'], { then: 'sumUp' })
    await endChildren()
    expect([await older.claim(), await older.claimJob(jobId)]).toEqual([[], { claimed: false }])
    expect((await next()).jobId).toBe(jobId)
  })

  test('that does not exist fails the job for good', async () => {
    const jobId = await start(['a'], { then: 'nothing' })
    expect(await engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'PermanentError' })
    expect(() => defer([], { then: 'sumUp', result: 1 })).toThrow('both result and then')
    expect(() =>
      operation('x', { payload: options, run: async () => null, parts: { 'a/b': async () => null } }),
    ).toThrow('not a name for a part')
  })

  test('is run by a worker, from beginning to end', async () => {
    const stop = new AbortController()
    const worked = engine.work({ signal: stop.signal, pollMs: 600_000 })
    const jobId = await submitted(engine.submit(sum, { tables: ['a', 'b'], defer: { then: 'sumUp' } }))
    await expect.poll(async () => (await engine.get(jobId))?.status, { timeout: 20_000 }).toBe('completed')
    stop.abort()
    await worked
    expect(parts).toEqual(['sumUp'])
  })
})

describe('a parent that nobody let go on', () => {
  test('is let go on by the sweep', async () => {
    const jobId = await start(['a'], { then: 'sumUp' })
    // The child's end without what follows it: the process has died in between.
    const [attempt] = await engine.claim({ operations: ['table'] })
    await bed.query(
      `with gone as (delete from fencepost.live_jobs where job_id = $1 returning *)
       insert into fencepost.finished_jobs (job_id, operation, queue, payload, status, priority, run_after, attempts,
              max_attempts, parent_job_id, submitted_at, completed_at, submitted_event_id)
       select job_id, operation, queue, payload, 'completed', priority, run_after, attempts, max_attempts,
              parent_job_id, submitted_at, now(), submitted_event_id from gone`,
      [attempt?.jobId],
    )
    await engine.sweep()
    expect((await next()).claimed).toMatchObject({ jobId, part: 'sumUp' })
  })
})

describe('a child whose lock is held', () => {
  const holders = async (...tables: string[]) =>
    Promise.all(tables.map((name) => submitted(engine.submit(table, { table: name }))))

  test('refuses all of it, unless told otherwise', async () => {
    await holders('b')
    const jobId = await start(['a', 'b'], {}, { maxAttempts: 1 })
    expect(await engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'child_conflict' })
  })

  test('is left out with skip, which the job says and its next part can read', async () => {
    const [one, two] = await holders('b', 'd')
    const jobId = await start(['a', 'b', 'c', 'd'], { onLocked: 'skip', then: 'sumUp' })
    expect((await engine.get(jobId))?.children).toEqual({ total: 2, completed: 0, failed: 0 })
    const locks = [
      { lock_key: 'table:b', holder: one },
      { lock_key: 'table:d', holder: two },
    ]
    const told = await engine.events(jobId)
    expect(told.find(({ event }) => event === 'job.deferred')?.fields).toEqual({
      children: 2,
      skipped: 2,
      then: 'sumUp',
    })
    const skipped = told.find(({ event }) => event === 'job.children_skipped')
    expect(skipped).toMatchObject({ level: 'warning', fields: { count: 2, locks } })
    await endChildren()
    await engine.run(await next())
    expect((await engine.get(jobId))?.result).toMatchObject({
      statuses: ['completed', 'completed'],
      skipped: { count: 2, locks: [{ lockKey: 'table:b', holder: one }, { lockKey: 'table:d' }] },
    })
  })

  test('leaves nothing to wait for when all are left out: the job goes on, or completes', async () => {
    await holders('a')
    const going = await start(['a'], { onLocked: 'skip', then: 'sumUp' })
    await engine.run(await next())
    expect((await engine.get(going))?.result).toMatchObject({ statuses: [], skipped: { count: 1 } })
    const done = await start(['a'], { onLocked: 'skip', result: { none: true } })
    expect(await engine.get(done)).toMatchObject({ status: 'completed', result: { none: true } })
    expect(await events(done)).toContain('job.children_skipped')
  })

  test('waits for it with wait, and the job for the child', async () => {
    const [holder] = await holders('b')
    const jobId = await start(['a', 'b'], { onLocked: 'wait' })
    const [busy] = await engine.claimJobs([holder ?? ''])
    await endChildren()
    expect((await engine.get(jobId))?.children).toEqual({ total: 2, completed: 1, failed: 0 })
    if (busy !== undefined) await engine.complete(busy, null)
    await endChildren()
    expect((await engine.get(jobId))?.status).toBe('completed')
  })

  test('never waits for the lock of a job that waits for it', async () => {
    const jobId = await start(['a'], { onLocked: 'wait' }, { lockKey: 'table:a' })
    expect(await engine.get(jobId)).toMatchObject({
      status: 'failed',
      errorCode: 'child_conflict',
      error: expect.stringContaining('it wants the lock table:a, which a job that waits for it keeps'),
    })
  })

  test('is dealt with as the child says, before what the deferral says', async () => {
    const [holder] = await holders('b')
    const parent = await submitted(engine.submit(work, {}))
    const [attempt] = await engine.claimJobs([parent])
    const children = [child(table, { table: 'b' }, { onLocked: 'wait' }), child(table, { table: 'b' })]
    if (attempt !== undefined) await engine.complete(attempt, defer(children, { onLocked: 'skip' }))
    expect((await engine.get(parent))?.children?.total).toBe(1)
    expect(holder).toBeDefined()
    const onLocked = 'drop' as 'skip'
    expect(() => defer([], { onLocked })).toThrow(/onLocked of defer\(\) is drop/)
  })
})
