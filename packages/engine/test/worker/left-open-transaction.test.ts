import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import type { TransactionClient } from '../../src/attempt/transaction.ts'
import { operation, type Run } from '../../src/operation.ts'
import { openBed, submitted, type Bed } from '../bed.ts'

// A handler that returns while a transaction of its own is open still holds its job's row.

let inTransaction: (client: TransactionClient) => Promise<unknown> = async () => null
let whenOpen: (run: Run<Record<string, unknown>>) => Promise<unknown> = async () => null
const leaving = operation('leaving', {
  payload: z.looseObject({}),
  maxAttempts: 1,
  run: async (run) => {
    const opened = new Promise<void>((resolve) => {
      void run.attempt.transaction((client) => {
        resolve()
        return inTransaction(client)
      })
    })
    await opened
    return whenOpen(run)
  },
})
const plain = operation('plain', { payload: z.looseObject({}), run: async () => 'done' })

let bed: Bed
beforeAll(async () => {
  bed = await openBed({ operations: [leaving, plain] })
  await bed.query('create table ledger (what text)')
})
beforeEach(async () => {
  whenOpen = async () => 'returned'
  await bed.query('delete from ledger')
  await bed.reset()
})
afterAll(() => bed.close())

const stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function start(graceMs: number, maxConnections: number): Promise<void> {
  const engine = await bed.open({ maxConnections })
  const controller = new AbortController()
  const worked = engine.work({ concurrency: 2, pollMs: 50, graceMs, signal: controller.signal })
  stops.push(() => {
    controller.abort()
    return worked
  })
}

test('a handler that returns with its transaction open holds up no other job, and is settled when that has ended', async () => {
  let commit = () => {}
  const gate = new Promise<void>((resolve) => {
    commit = resolve
  })
  inTransaction = async (client) => {
    await client.query(`insert into ledger values ('kept')`)
    await gate
  }
  let returned = false
  whenOpen = async () => {
    returned = true
    return 'returned'
  }
  const first = await submitted(bed.engine.submit(leaving, {}))
  await start(60_000, 4)
  try {
    await expect.poll(() => returned).toBe(true)
    const second = await submitted(bed.engine.submit(plain, {}))
    await expect.poll(() => bed.engine.get(second), { timeout: 10_000 }).toMatchObject({ status: 'completed' })
    expect(await bed.engine.get(first)).toMatchObject({ status: 'running' })
  } finally {
    commit()
  }
  await expect.poll(() => bed.engine.get(first)).toMatchObject({ status: 'completed', result: 'returned' })
  expect(await bed.query('select * from ledger')).toEqual([{ what: 'kept' }])
})

test.each([
  ['waits for something', () => new Promise(() => {})],
  ['runs a statement', (client: TransactionClient) => client.query('select pg_sleep(2)')],
])('a transaction left open that %s is rolled back after the grace, and fails its attempt', async (_what, goesOn) => {
  let going = false
  inTransaction = async (client) => {
    await client.query(`insert into ledger values ('lost')`)
    going = true
    await goesOn(client)
    await client.query(`insert into ledger values ('after the end')`)
  }
  whenOpen = () => expect.poll(() => going).toBe(true)
  const first = await submitted(bed.engine.submit(leaving, {}))
  await start(10, 2)
  await expect
    .poll(() => bed.engine.get(first), { timeout: 10_000 })
    .toMatchObject({ status: 'failed', errorCode: 'transaction_left_open' })
  expect(await bed.query('select * from ledger')).toEqual([])
  const second = await submitted(bed.engine.submit(plain, {})) // the pool has its connection back
  await expect.poll(() => bed.engine.get(second)).toMatchObject({ status: 'completed' })
})

test('a transaction that begins after its handler has returned is refused, and settles nothing', async () => {
  const refused: unknown[] = []
  inTransaction = async () => null
  whenOpen = async ({ attempt }) => {
    // Later in the same turn of the event loop, before the outcome can have been written.
    const late = () => attempt.transaction((client) => client.query(`insert into ledger values ('late')`))
    const completing = () => attempt.complete((client) => client.query(`insert into ledger values ('later')`))
    setImmediate(() => {
      for (const begin of [late, completing]) begin().catch((error: unknown) => refused.push(error))
    })
    return 'returned'
  }
  const jobId = await submitted(bed.engine.submit(leaving, {}))
  await start(60_000, 4)
  await expect.poll(() => refused).toHaveLength(2)
  expect(refused).toMatchObject([{ code: 'transaction_left_open' }, { code: 'transaction_left_open' }])
  await expect.poll(() => bed.engine.get(jobId)).toMatchObject({ status: 'completed', result: 'returned' })
  expect(await bed.query('select * from ledger')).toEqual([])
})

test('a handler that throws with its transaction open fails with its own error', async () => {
  inTransaction = () => new Promise(() => {})
  whenOpen = async () => {
    throw new RangeError('its own')
  }
  const jobId = await submitted(bed.engine.submit(leaving, {}))
  await start(10, 2)
  await expect
    .poll(() => bed.engine.get(jobId), { timeout: 10_000 })
    .toMatchObject({ status: 'failed', errorCode: 'RangeError' })
})
