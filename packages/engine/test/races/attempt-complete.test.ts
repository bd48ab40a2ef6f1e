import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Engine } from '../../src/engine.ts'
import { operation } from '../../src/operation.ts'
import { z } from 'zod'
import { completing as completed } from './uncommitted.ts'

const isolated = operation('isolated', { payload: z.object({}), isolation: 'process', run: async () => null })

let bed: Bed
let slow: Engine
const gate = new Gate()
const warnings: string[] = []
beforeAll(async () => {
  bed = await openBed()
  const note = (_: unknown, message: string) => warnings.push(message)
  const logger = { info() {}, warn: note, error: note }
  slow = await bed.open({ operations: [work, isolated], logger }, { pausePoint: gate.pausePoint })
  await bed.query('create table user_rows (name text primary key)')
})
beforeEach(async () => {
  await bed.reset()
  await bed.query('delete from user_rows')
  warnings.length = 0
})
afterAll(() => bed.close())

const insert = `insert into user_rows values ('mine')`
const userRows = () => bed.query('select name from user_rows')

async function running(): Promise<Attempt> {
  await submitted(bed.engine.submit(work, {}))
  return claimOne(slow)
}

const completing = (attempt: Attempt) => attempt.complete((client) => client.query(insert).then(() => 'stored'))

/** A completion that has done everything but commit. */
async function uncommitted(attempt: Attempt) {
  const stop = gate.stopAt('complete.commit')
  const completed = completing(attempt).catch((error: unknown) => error)
  await stop.reached
  return { go: stop.go, completed }
}

test('before the commit neither the rows nor the end of the job can be seen, after it both', async () => {
  const attempt = await running()
  const { go, completed } = await uncommitted(attempt)
  expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'running' })
  expect(await userRows()).toEqual([])
  go()
  expect(await completed).toBe('stored')
  expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'completed', result: 'stored' })
  expect(await userRows()).toHaveLength(1)
})

test('a connection that breaks before the commit leaves neither; the next attempt writes both', async () => {
  const attempt = await running()
  const { go, completed } = await uncommitted(attempt)
  await bed.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction'`,
  )
  go()
  expect(await completed).toMatchObject({ code: 'database_unavailable' })
  expect(await userRows()).toEqual([])
  expect(attempt.completed).toBeUndefined()
  await bed.advance(60_000)
  expect(await bed.engine.sweep()).toMatchObject({ expired: [attempt.jobId] })
  const next = await claimOne(bed.engine)
  expect(await completing(next)).toBe('stored')
  expect(await userRows()).toHaveLength(1)
  await expect(completing(attempt)).rejects.toMatchObject({ code: 'fence_lost' })
})

test('a cancel waits for it, and comes too late', async () => {
  const attempt = await running()
  const { go, completed } = await uncommitted(attempt)
  const late = bed.engine.cancel(attempt.jobId)
  await bed.blocked()
  go()
  expect(await completed).toBe('stored')
  expect(await late).toEqual({ cancelled: false, why: 'finished', status: 'completed' })
})

test('a cancel that waits from before its last statements does not deadlock with it', async () => {
  const attempt = await running()
  const stop = gate.stopAt('complete')
  const completed = completing(attempt)
  await stop.reached
  const late = bed.engine.cancel(attempt.jobId)
  await bed.blocked()
  stop.go()
  expect(await completed).toBe('stored')
  expect(await late).toMatchObject({ cancelled: false, why: 'finished' })
  expect(warnings).toEqual([])
})

test('the sweep passes over its job, although the lease has passed', async () => {
  const attempt = await running()
  const { go, completed } = await uncommitted(attempt)
  await bed.advance(60_000)
  expect(await bed.engine.sweep()).toMatchObject({ expired: [], failed: [] })
  go()
  expect(await completed).toBe('stored')
})

test('a renewal on its way while it commits is no stale write', async () => {
  const attempt = await running()
  const stop = gate.stopAt('renew')
  const renewed = slow.renew([attempt])
  await stop.reached
  await completing(attempt)
  stop.go()
  expect(await renewed).toEqual({ lost: [] })
  expect(await slow.renew([attempt])).toEqual({ lost: [] })
  expect(attempt.abortReason).toBeUndefined()
  expect(warnings).toEqual([])
})

test('nor is one of a worker whose handler has completed in a process of its own, and not said so yet', async () => {
  await submitted(slow.submit(isolated, {}))
  const attempt = await claimOne(slow)
  const elsewhere = await bed.hold(completed(attempt))
  await elsewhere.commit()
  expect(await slow.renew([attempt])).toEqual({ lost: [] })
  expect(attempt.abortReason).toBeUndefined()
  expect(warnings).toEqual([])
})

test('a report of the same completion finds that it landed', async () => {
  const attempt = await running()
  await completing(attempt)
  expect(await slow.complete(attempt)).toEqual({ settled: true })
  expect(warnings).toEqual([])
})
