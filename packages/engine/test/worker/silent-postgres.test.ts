import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Database, type PausePoint } from '../../src/database/database.ts'
import { raw } from '../../src/database/sql.ts'
import { operation, type Run } from '../../src/operation.ts'
import type { EngineOptions } from '../../src/options.ts'
import { openBed, submitted, type Bed } from '../bed.ts'
import { LosingProxy } from '../races/losing-proxy.ts'

// Connections on which nothing passes any more and of which nobody is told, as when the host of Postgres has vanished
// and its address is another's, or when a firewall has forgotten them. The system finds out after a quarter of an hour.

let handler: (run: Run<Record<string, unknown>>) => Promise<unknown> = async () => null
const handled = operation('handled', { payload: z.looseObject({}), leaseMs: 8_000, run: (run) => handler(run) })

let bed: Bed
let proxy: LosingProxy
let stop: AbortController
let worked: Promise<void> | undefined
beforeEach(async () => {
  bed = await openBed({ operations: [handled] })
  proxy = await LosingProxy.open(bed.url)
  stop = new AbortController()
})
afterEach(async () => {
  stop.abort()
  await worked
  await proxy.close()
  await bed.close()
})

async function start(options: Partial<EngineOptions> = {}, pausePoint?: PausePoint): Promise<void> {
  const engine = await bed.open({ database: proxy.url, ...options }, pausePoint === undefined ? {} : { pausePoint })
  worked = engine.work({ pollMs: 100, wakeUp: 'none', graceMs: 100, signal: stop.signal })
}

/** A handler that has begun, and what ends it. */
function waiting() {
  let begun = () => {}
  let letGo = () => {}
  const began = new Promise<void>((resolve) => {
    begun = resolve
  })
  const end = new Promise<void>((resolve) => {
    letGo = resolve
  })
  handler = async () => {
    begun()
    await end
  }
  return { began, letGo }
}

describe('a worker whose connections fall silent', () => {
  test('renews over others, and its job is done by its first attempt', async () => {
    const { began, letGo } = waiting()
    let renewals = 0
    await start({}, async ({ statement }) => {
      if (statement === 'renew') renewals += 1
    })
    const jobId = await submitted(bed.engine.submit(handled, {}))
    await began
    await expect.poll(() => renewals, { timeout: 10_000 }).toBe(1) // over the connection that is to fall silent
    proxy.fallSilent()
    const renewedAgain = `select from fencepost.jobs where lease_until > locked_at + interval '14 seconds'`
    await expect.poll(() => bed.query(renewedAgain), { timeout: 15_000 }).toHaveLength(1)
    expect(renewals).toBe(3)
    letGo()
    await expect
      .poll(() => bed.engine.get(jobId), { timeout: 10_000 })
      .toMatchObject({ status: 'completed', attempts: 1 })
  })

  test('settles over others what was not answered', async () => {
    let silent = false
    await start({ answerTimeoutMs: 1_000 }, async ({ statement }) => {
      if (silent || statement !== 'complete') return
      silent = true
      proxy.fallSilent()
    })
    handler = async () => 'done'
    const jobId = await submitted(bed.engine.submit(handled, {}))
    await expect
      .poll(() => bed.engine.get(jobId), { timeout: 10_000 })
      .toMatchObject({ status: 'completed', attempts: 1, result: 'done' })
    expect(silent).toBe(true)
  })

  // An answer that comes only after its time costs the job an attempt and a lease, so that the number of attempts is not
  // asked for: a busy machine may be as late as that.
  test('claims over others', async () => {
    await start({ answerTimeoutMs: 2_000 })
    handler = async () => null
    await expect.poll(() => bed.engine.workers()).toHaveLength(1)
    proxy.fallSilent()
    const jobId = await submitted(bed.engine.submit(handled, {}))
    await expect.poll(() => bed.engine.get(jobId), { timeout: 25_000 }).toMatchObject({ status: 'completed' })
  })

  test('stops its handlers before their leases can lapse, when there are no others', async () => {
    let begun = () => {}
    const began = new Promise<void>((resolve) => {
      begun = resolve
    })
    const told = new Promise<string | undefined>((resolve) => {
      handler = async ({ attempt, signal }) => {
        begun()
        await new Promise<void>((aborted) => signal.addEventListener('abort', () => aborted()))
        resolve(attempt.abortReason)
      }
    })
    await start()
    const jobId = await submitted(bed.engine.submit(handled, {}))
    await began
    proxy.fallSilent('all')
    expect(await told).toBe('database_unreachable')
    const [job] = await bed.query<{ alive: boolean }>(
      'select lease_until > fencepost.clock() as alive from fencepost.jobs',
    )
    expect({ jobId, ...job }).toEqual({ jobId, alive: true })
  })

  test('stops all the same, and leaves its jobs to their leases', async () => {
    const { began, letGo } = waiting()
    await start()
    const jobId = await submitted(bed.engine.submit(handled, {}))
    await began
    proxy.fallSilent('all')
    stop.abort()
    await worked
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', attempts: 1 })
    letGo()
  })
})

describe('a pool whose connections fall silent', () => {
  const open = () =>
    new Database({
      url: proxy.url,
      schema: 'fencepost',
      maxConnections: 3,
      preparedStatements: true,
      connectTimeoutMs: 10_000,
      answerTimeoutMs: 1_000,
      idleTransactionTimeoutMs: 30_000,
      lockTimeoutMs: 60_000,
      onConnectionError: () => {},
    })
  const one = raw('select 1')

  test('loses one statement, not one for each of them', async () => {
    const database = open()
    await Promise.all(['one', 'two', 'three'].map((name) => database.query(name, raw('select pg_sleep(0.1)'))))
    proxy.fallSilent()
    await expect(database.query('lost', one)).rejects.toMatchObject({ code: 'database_unavailable' })
    expect(await database.query('after', one)).toHaveLength(1)
    await database.close()
  })

  test('gives up a transaction, and uses its connection no more', async () => {
    const database = open()
    const done = database.transaction('silent', async (db) => {
      await db.query('first', one)
      proxy.fallSilent()
      await db.query('second', one)
    })
    await expect(done).rejects.toMatchObject({ code: 'database_unavailable', details: { applied: 'no' } })
    expect(await database.query('after', one)).toHaveLength(1)
    await database.close()
  })

  test('gives up a transaction for the reason it had, where that is another', async () => {
    const database = open()
    const done = database.transaction('silent', async () => {
      proxy.fallSilent()
      throw new Error('changed my mind')
    })
    await expect(done).rejects.toThrow('changed my mind')
    expect(await database.query('after', one)).toHaveLength(1)
    await database.close()
  })
})
