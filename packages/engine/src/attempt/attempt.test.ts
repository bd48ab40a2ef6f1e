import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { PermanentError, RetryLater } from '../errors.ts'
import { child, defer } from '../lifecycle/defer.ts'
import type { Logger } from '../logger.ts'
import { operation, type Run } from '../operation.ts'

const payload = z.object({ n: z.number().default(1) })
let handler: (run: Run<{ n: number }>) => Promise<unknown> = async () => null
const handled = operation('handled', { payload, run: (run) => handler(run) })

let bed: Bed
const logged: { fields: Record<string, unknown>; message: string }[] = []
const logger: Logger = {
  info: () => {},
  warn: (fields, message) => logged.push({ fields, message }),
  error: () => {},
}

beforeAll(async () => {
  bed = await openBed({ operations: [work, handled], logger, maxPayloadBytes: 1000 })
  await bed.query('create table rows_of_handlers (n integer)')
})
beforeEach(async () => {
  await bed.reset()
  await bed.query('delete from rows_of_handlers')
  logged.length = 0
})
afterAll(() => bed.close())

async function runOne(run: typeof handler) {
  handler = run
  const jobId = await submitted(bed.engine.submit(handled, {}))
  const [attempt] = await bed.engine.claim()
  if (attempt === undefined) throw new Error('nothing to claim')
  const answer = await bed.engine.run(attempt)
  return { jobId, answer, job: await bed.engine.get(jobId) }
}

describe('run', () => {
  test('gives the handler what its schema reads, and stores what it returns', async () => {
    const { job } = await runOne(async ({ payload: { n } }) => ({ twice: n * 2 }))
    expect(job).toMatchObject({ status: 'completed', payload: {}, result: { twice: 2 } })
  })

  test('an error is retried, a permanent one is not, and retry later spends nothing', async () => {
    const throwing = (error: Error) =>
      runOne(async () => {
        throw error
      })
    expect((await throwing(new RangeError('x'))).job).toMatchObject({ status: 'pending', errorCode: 'RangeError' })
    expect((await throwing(new PermanentError('x'))).job).toMatchObject({ status: 'failed' })
    expect((await throwing(new RetryLater('busy', 5))).job).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('what is thrown need not be an error', async () => {
    // oxlint-disable-next-line prefer-promise-reject-errors -- a handler may do anything
    const { job } = await runOne(() => Promise.reject('just text'))
    expect(job).toMatchObject({ status: 'pending', error: 'just text', errorCode: 'Error' })
  })

  test.each<[string, () => unknown, string]>([
    ['too large', () => 'x'.repeat(2000), 'json_too_large'],
    ['not JSON', () => 1n, 'json_invalid'],
  ])('a result that is %s is an error of the handler', async (_, result, errorCode) => {
    const { job } = await runOne(async () => result())
    expect(job).toMatchObject({ status: 'pending', errorCode })
  })

  test('a stored payload that its schema no longer takes fails for good', async () => {
    const jobId = await submitted(bed.engine.submit(handled, {}))
    await bed.query(`update fencepost.live_jobs set payload = '{"n": "many"}'`)
    const [attempt] = await bed.engine.claim()
    if (attempt !== undefined) await bed.engine.run(attempt)
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'failed', errorCode: 'payload_invalid' })
  })

  test('deferring and chaining at once is refused', async () => {
    const { job } = await runOne(async ({ attempt }) => {
      attempt.chain(work, {})
      return defer([child(work, {})])
    })
    expect(job).toMatchObject({ status: 'failed', errorCode: 'PermanentError' })
    expect(await bed.engine.list({ operation: 'work' })).toEqual([])
  })
})

describe('step', () => {
  test('runs once over all attempts of a job', async () => {
    const runs: string[] = []
    const steps = async ({ attempt }: Run<unknown>) => {
      const a = await attempt.step('a', async () => {
        runs.push('a')
        return 40
      })
      return attempt.step('b', async () => {
        runs.push('b')
        if (runs.length < 3) throw new Error('b fails the first time')
        return a + 2
      })
    }
    const { jobId } = await runOne(steps)
    await bed.advance(2000)
    const [again] = await bed.engine.claim()
    if (again !== undefined) await bed.engine.run(again)
    expect(runs).toEqual(['a', 'b', 'b'])
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: 42 })
    expect(await again?.steps()).toMatchObject([
      { ordinal: 1, step: 'a', success: true, result: 40 },
      { ordinal: 2, step: 'b', success: false, error: 'b fails the first time' },
      { ordinal: 3, step: 'b', success: true, result: 42 },
    ])
  })
})

describe('holdFence', () => {
  const insert = 'insert into rows_of_handlers values (1)'
  const rows = () => bed.query('select n from rows_of_handlers')
  const sessions: pg.Client[] = []
  const session = async () => {
    const client = new pg.Client({ connectionString: bed.url })
    await client.connect()
    sessions.push(client)
    return client
  }
  afterAll(() => Promise.all(sessions.map((client) => client.end())))

  test('in a transaction of the caller keeps everybody from ending the attempt until that has committed', async () => {
    const jobId = await submitted(bed.engine.submit(handled, {}))
    const [attempt] = await bed.engine.claim()
    if (attempt === undefined) throw new Error('nothing to claim')
    const caller = await session()
    await caller.query('begin')
    await caller.query(insert)
    expect(await attempt.holdFence(caller)).toEqual({ held: true })
    const cancelled = bed.engine.cancel(jobId)
    await bed.blocked()
    expect((await bed.engine.get(jobId))?.status).toBe('running')
    await caller.query('commit')
    expect(await cancelled).toMatchObject({ cancelled: true })
    expect(await rows()).toHaveLength(1)
  })

  test('answers that the fence is lost, fires the signal and locks nothing', async () => {
    const jobId = await submitted(bed.engine.submit(handled, {}))
    const [attempt] = await bed.engine.claim()
    await bed.engine.cancel(jobId)
    const caller = await session()
    await caller.query('begin')
    expect(await attempt?.holdFence(caller)).toEqual({ held: false, why: 'fence_lost' })
    expect(await attempt?.checkFence()).toEqual({ held: false, why: 'fence_lost' })
    expect(attempt?.signal.aborted).toBe(true)
    await caller.query('rollback')
  })
})

describe('transaction', () => {
  const insert = 'insert into rows_of_handlers values (1)'

  test('commits the handler’s rows while the fence is held', async () => {
    await runOne(({ attempt }) => attempt.transaction((client) => client.query(insert)).then(() => null))
    expect(await bed.query('select from rows_of_handlers')).toHaveLength(1)
  })

  test('writes nothing once the fence is lost, and says so everywhere', async () => {
    const { jobId, answer } = await runOne(async ({ attempt, signal }) => {
      await bed.engine.cancel(attempt.jobId)
      const error = await attempt.transaction((client) => client.query(insert)).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'fence_lost' })
      expect(signal.aborted).toBe(true)
    })
    expect(answer).toMatchObject({ settled: false, why: 'fence_lost' })
    expect(await bed.query('select from rows_of_handlers')).toEqual([])
    const events = (await bed.engine.events(jobId)).filter(({ event }) => event === 'job.fence_rejected')
    expect(events.map(({ fields }) => fields)).toEqual([{ verb: 'transaction' }, { verb: 'complete' }])
    expect(logged).toMatchObject([
      { message: 'writeback_stale_attempt', fields: { job_id: jobId, verb: 'transaction', operation: 'handled' } },
      { message: 'writeback_stale_attempt', fields: { verb: 'complete' } },
    ])
  })

  test('a handler’s error takes its rows back', async () => {
    const { job } = await runOne(({ attempt }) =>
      attempt.transaction(async (client) => {
        await client.query(insert)
        throw new Error('changed my mind')
      }),
    )
    expect(job).toMatchObject({ status: 'pending', error: 'changed my mind' })
    expect(await bed.query('select from rows_of_handlers')).toEqual([])
  })

  test('a swallowed error is not taken for a commit', async () => {
    const { job } = await runOne(({ attempt }) =>
      attempt.transaction(async (client) => {
        await client.query(insert)
        await client.query('select no_such_column').catch(() => {})
      }),
    )
    expect(job).toMatchObject({ status: 'pending', errorCode: 'transaction_aborted' })
    expect(await bed.query('select from rows_of_handlers')).toEqual([])
  })

  test('none is open while a handler runs', async () => {
    await runOne(async () => {
      const open = await bed.query(
        `select query from pg_stat_activity
          where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()`,
      )
      expect(open).toEqual([])
    })
  })
})

test('submitting is typed by the schema', () => {
  const typed = async () => {
    await bed.engine.submit(handled, { n: 1 })
    // @ts-expect-error n is a number
    await bed.engine.submit(handled, { n: 'one' })
    // @ts-expect-error so it is for a child
    child(handled, { n: 'one' })
  }
  expect(typed).toBeTypeOf('function')
})
