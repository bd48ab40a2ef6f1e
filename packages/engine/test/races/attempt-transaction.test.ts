import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Engine } from '../../src/engine.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { completing } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
const gate = new Gate()
let slow: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
  slow = await bed.open({}, { pausePoint: gate.pausePoint })
  await bed.query('create table user_rows (name text primary key)')
})
beforeEach(async () => {
  await bed.reset()
  await bed.query('truncate user_rows')
})
afterAll(() => bed.close())

const userRows = async () => (await bed.query<{ name: string }>('select name from user_rows')).map(({ name }) => name)
const insert = `insert into user_rows values ('mine')`

async function running(options = {}): Promise<Attempt> {
  await submitted(bed.engine.submit(work, {}, options))
  return claimOne(bed.engine)
}

/** A transaction of the attempt that has written its row and goes no further until it is told to end. */
async function open(attempt: Attempt): Promise<{ end: (how?: Error) => void; ended: Promise<unknown> }> {
  let written = () => {}
  const inside = new Promise<void>((resolve) => {
    written = resolve
  })
  let end: (how?: Error) => void = () => {}
  const told = new Promise<void>((resolve, reject) => {
    end = (how) => (how === undefined ? resolve() : reject(how))
  })
  const ended = attempt
    .transaction(async (client) => {
      await client.query(insert)
      written()
      await told
      return 'committed'
    })
    .catch((error: unknown) => error)
  await Promise.race([inside, ended])
  return { end, ended }
}

describe('while an attempt’s own transaction is open', () => {
  test('a cancel waits for it: what was written stays, and the job is cancelled after it', async () => {
    const attempt = await running()
    const { end, ended } = await open(attempt)
    const late = other.cancel(attempt.jobId)
    await bed.blocked()
    expect(await bed.engine.get(attempt.jobId)).toMatchObject({ status: 'running' })
    end()
    expect(await ended).toBe('committed')
    expect(await late).toEqual({ cancelled: true, jobIds: [attempt.jobId] })
    expect(await userRows()).toEqual(['mine'])
  })

  test('a recovery waits for it', async () => {
    const attempt = await running()
    await bed.advance(3_600_000)
    const { end, ended } = await open(attempt)
    const late = other.recover(attempt.jobId)
    await bed.blocked()
    end()
    expect(await ended).toBe('committed')
    expect(await late).toEqual({ recovered: true })
  })

  test('the sweep skips its job, although the lease has lapsed, and takes it afterwards', async () => {
    const attempt = await running()
    const { end, ended } = await open(attempt)
    await bed.advance(60_000)
    expect(await other.sweep()).toMatchObject({ expired: [], failed: [] })
    expect(await other.claim()).toEqual([])
    end()
    expect(await ended).toBe('committed')
    expect(await other.sweep()).toMatchObject({ expired: [attempt.jobId] })
    expect(await userRows()).toEqual(['mine'])
  })

  test('the sweep skips its job on the last attempt too', async () => {
    const attempt = await running({ maxAttempts: 1 })
    const { end, ended } = await open(attempt)
    await bed.advance(60_000)
    expect(await other.sweep()).toMatchObject({ expired: [], failed: [] })
    end()
    expect(await ended).toBe('committed')
    expect(await other.sweep()).toMatchObject({ failed: [attempt.jobId] })
  })

  test('renewals, events, progress and steps of the same attempt pass', async () => {
    const attempt = await running({ lockKey: 'l', slotKey: 's' })
    const { end, ended } = await open(attempt)
    const before = await bed.engine.get(attempt.jobId)
    await bed.advance(20_000)
    expect(await bed.engine.renew([attempt])).toEqual({ lost: [] })
    expect((await bed.engine.get(attempt.jobId))?.leaseUntil).not.toBe(before?.leaseUntil)
    expect(await attempt.emit('work.half', { progress: { current: 1 } })).toEqual({ written: true })
    expect(await attempt.progress(2)).toEqual({ written: true })
    expect(await attempt.recordStep({ step: 'one', success: true })).toEqual({ written: true })
    end()
    expect(await ended).toBe('committed')
    expect(await bed.engine.complete(attempt)).toEqual({ settled: true })
  })

  test('a second transaction of the same attempt passes', async () => {
    const attempt = await running()
    const { end, ended } = await open(attempt)
    await attempt.transaction((client) => client.query(`insert into user_rows values ('also mine')`))
    end()
    await ended
    expect((await userRows()).sort()).toEqual(['also mine', 'mine'])
  })

  test('the attempt’s completion waits for it', async () => {
    const attempt = await running()
    const { end, ended } = await open(attempt)
    const late = bed.engine.complete(attempt)
    await bed.blocked()
    end()
    expect(await ended).toBe('committed')
    expect(await late).toEqual({ settled: true })
  })
})

describe('a transaction of an attempt', () => {
  test('rolls back what it wrote when its function throws, and the attempt goes on', async () => {
    const attempt = await running()
    const { end, ended } = await open(attempt)
    const before = await tableRows(bed)
    const thrown = new Error('of the handler')
    end(thrown)
    expect(await ended).toBe(thrown)
    expect(await userRows()).toEqual([])
    expect(await tableRows(bed)).toEqual(before)
    expect(await bed.engine.complete(attempt)).toEqual({ settled: true })
  })

  test('does not begin when the fence is lost: its function is not called', async () => {
    const attempt = await running()
    await other.cancel(attempt.jobId)
    let called = false
    const refused = attempt.transaction(async () => {
      called = true
    })
    await expect(refused).rejects.toMatchObject({ code: 'fence_lost' })
    expect(called).toBe(false)
    expect(attempt.signal.reason).toBe('fence_lost')
  })

  test('that waits for a cancel under way finds its fence lost', async () => {
    const attempt = await running()
    const stop = gate.stopAt('cancel.commit')
    const cancelled = slow.cancel(attempt.jobId)
    await stop.reached
    const late = attempt.transaction((client) => client.query(insert)).catch((error: unknown) => error)
    await bed.blocked()
    stop.go()
    await cancelled
    expect(await late).toMatchObject({ code: 'fence_lost' })
    expect(await userRows()).toEqual([])
  })

  test('that waits for a settlement that rolls back goes on', async () => {
    const attempt = await running()
    const held = await bed.hold(completing(attempt))
    const late = attempt.transaction((client) => client.query(insert))
    await bed.blocked()
    await held.rollback()
    await late
    expect(await userRows()).toEqual(['mine'])
  })

  test('in which an error of Postgres was swallowed is an error, not a silent rollback', async () => {
    const attempt = await running()
    const swallowing = attempt.transaction(async (client) => {
      await client.query(insert)
      await client.query(insert).catch(() => {}) // the same key again
      return 'looks fine'
    })
    await expect(swallowing).rejects.toMatchObject({ code: 'transaction_aborted', retryable: false })
    expect(await userRows()).toEqual([])
    expect(await bed.engine.complete(attempt)).toEqual({ settled: true })
  })

  test('in which an error was undone by a savepoint commits', async () => {
    const attempt = await running()
    await attempt.transaction(async (client) => {
      await client.query(insert)
      await client.query('savepoint again')
      await client.query(insert).catch(() => client.query('rollback to savepoint again'))
    })
    expect(await userRows()).toEqual(['mine'])
  })

  test('can submit a job that exists only if it commits', async () => {
    const attempt = await running()
    const failing = attempt.transaction(async (client) => {
      await bed.engine.submit(work, {}, { client, dedupKey: 'd' })
      throw new Error('of the handler')
    })
    await expect(failing).rejects.toThrow('of the handler')
    expect(await other.claim()).toEqual([])
    await attempt.transaction((client) => bed.engine.submit(work, {}, { client, dedupKey: 'd' }))
    expect(await other.claim()).toHaveLength(1)
  })
})
