import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { child, defer } from '../lifecycle/defer.ts'
import { operation, type Run } from '../operation.ts'

let handler: (run: Run<object>) => Promise<unknown> = async () => null
const handled = operation('handled', { keys: 'caller', payload: z.object({}), run: (run) => handler(run) })
const insert = 'insert into rows_of_handlers values (1)'

let bed: Bed
const warnings: string[] = []
beforeAll(async () => {
  const logger = { info: () => {}, warn: (_: unknown, message: string) => warnings.push(message), error: () => {} }
  bed = await openBed({ operations: [work, handled], logger, maxPayloadBytes: 1000 })
  await bed.query('create table rows_of_handlers (n integer)')
})
beforeEach(async () => {
  await bed.reset()
  await bed.query('delete from rows_of_handlers')
  warnings.length = 0
})
afterAll(() => bed.close())

const rows = () => bed.query('select n from rows_of_handlers')
const eventsOf = async (jobId: string) => (await bed.engine.events(jobId)).map(({ event }) => event)

async function runOne(run: typeof handler) {
  handler = run
  const jobId = await submitted(bed.engine.submit(handled, {}, { lockKey: 'lock', slotKey: 'slot' }))
  const [attempt] = await bed.engine.claim()
  if (attempt === undefined) throw new Error('nothing to claim')
  const answer = await bed.engine.run(attempt)
  return { jobId, attempt, answer, job: await bed.engine.get(jobId) }
}

test('rows, result, chained job and the end of the job are there together', async () => {
  const { jobId, answer, job } = await runOne(async ({ attempt }) => {
    attempt.chain(work, { next: true })
    const value = await attempt.complete(async (client) => {
      await client.query(insert)
      return { stored: 1 }
    })
    expect(value).toEqual({ stored: 1 })
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'completed', result: { stored: 1 } })
    expect(await rows()).toHaveLength(1)
    expect((await bed.engine.pipeline(attempt.jobId))?.jobs).toHaveLength(2)
    return 'not the result'
  })
  expect(answer).toMatchObject({ settled: true, outcome: { kind: 'completed', written: true } })
  expect(job).toMatchObject({ status: 'completed', result: { stored: 1 }, attempts: 1 })
  expect(await eventsOf(jobId)).toEqual(['job.submitted', 'job.started', 'job.chained', 'job.completed'])
  expect(await bed.query('select from fencepost.resource_locks')).toEqual([])
  expect(await bed.engine.list({ operation: 'work' })).toHaveLength(1)
})

test('what the handler throws afterwards changes nothing, and is logged', async () => {
  const { jobId, job } = await runOne(async ({ attempt }) => {
    await attempt.complete((client) => client.query(insert).then(() => null))
    throw new Error('too late')
  })
  expect(job).toMatchObject({ status: 'completed', error: undefined })
  expect(warnings).toEqual(['error_after_completion'])
  expect(await eventsOf(jobId)).not.toContain('job.fence_rejected')
})

test('an error of its function takes the rows back, and the job is retried', async () => {
  const { job } = await runOne(({ attempt }) =>
    attempt.complete(async (client) => {
      await client.query(insert)
      throw new Error('changed my mind')
    }),
  )
  expect(job).toMatchObject({ status: 'pending', error: 'changed my mind' })
  expect(await rows()).toEqual([])
})

test('what is chained inside is taken back with the rows, and can be chained again', async () => {
  const { jobId } = await runOne(async ({ attempt }) => {
    const completing = (fails: boolean) =>
      attempt.complete(async (client) => {
        await client.query(insert)
        attempt.chain(work, {})
        if (fails) throw new Error('not this time')
      })
    await completing(true).catch(() => {})
    await completing(false)
  })
  expect(await rows()).toHaveLength(1)
  expect((await bed.engine.pipeline(jobId))?.jobs).toHaveLength(2)
})

test('a result that cannot be stored takes the rows back', async () => {
  const { job } = await runOne(({ attempt }) =>
    attempt.complete(async (client) => {
      await client.query(insert)
      return 'x'.repeat(2000)
    }),
  )
  expect(job).toMatchObject({ status: 'pending', errorCode: 'json_too_large' })
  expect(await rows()).toEqual([])
})

test('a swallowed error is not taken for a commit', async () => {
  const { job } = await runOne(({ attempt }) =>
    attempt.complete(async (client) => {
      await client.query(insert)
      await client.query('select no_such_column').catch(() => {})
    }),
  )
  expect(job?.status).toBe('pending')
  expect(await rows()).toEqual([])
})

test('once the fence is lost its function is not called', async () => {
  let called = false
  const { jobId, answer } = await runOne(async ({ attempt, signal }) => {
    await bed.engine.cancel(attempt.jobId)
    const late = attempt.complete(async () => {
      called = true
    })
    await expect(late).rejects.toMatchObject({ code: 'fence_lost' })
    expect(signal.aborted).toBe(true)
  })
  expect(called).toBe(false)
  expect(answer).toMatchObject({ settled: false, why: 'fence_lost' })
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'cancelled' })
})

test('it cannot defer', async () => {
  const { job } = await runOne(({ attempt }) => attempt.complete(async () => defer([child(work, {})])))
  expect(job).toMatchObject({
    status: 'failed',
    errorCode: 'PermanentError',
    error: expect.stringContaining('return defer() from the handler'),
  })
  expect(await bed.engine.list({ operation: 'work' })).toEqual([])
})

test('the last child closes its parent', async () => {
  const { jobId: parent } = await runOne(async () => defer([child(handled, {})]))
  handler = ({ attempt }) => attempt.complete(async (client) => client.query(insert).then(() => null))
  const [attempt] = await bed.engine.claim()
  if (attempt !== undefined) await bed.engine.run(attempt)
  expect(await bed.engine.get(parent)).toMatchObject({ status: 'completed', children: { total: 1, completed: 1 } })
})
