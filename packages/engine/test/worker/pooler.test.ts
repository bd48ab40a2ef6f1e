import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { operation } from '../../src/operation.ts'
import { openBed, type Bed } from '../bed.ts'
import { hasPgBouncer, startPgBouncer, type PgBouncer } from './pgbouncer.ts'

const noted = operation('noted', {
  keys: 'caller',
  payload: z.object({ n: z.number() }),
  leaseMs: 1_000,
  run: async ({ payload, attempt }) => {
    await attempt.emit('noted.begun')
    await attempt.transaction((client) => client.query('insert into ledger values ($1)', [payload.n]))
    // Some are at it for longer than their lease, and must be renewed.
    if (payload.n % 100 === 0) await attempt.transaction((client) => client.query('select pg_sleep(1.5)'))
  },
})
const parent = operation('parent', {
  keys: 'caller',
  payload: z.looseObject({}),
  run: async () => defer(Array.from({ length: 20 }, (_, n) => child(noted, { n: 1_001 + n }))),
})

describe.runIf(hasPgBouncer())('behind a pooler that lends connections to single transactions', () => {
  let bed: Bed
  let pooler: PgBouncer
  beforeAll(async () => {
    bed = await openBed({ operations: [noted, parent] })
    await bed.query('create table ledger (n integer)')
    pooler = await startPgBouncer(bed.url, 12)
  })
  afterAll(async () => {
    await bed.close()
    await pooler.stop()
  })

  test('two workers that look by themselves run every job once', async () => {
    const open = () => bed.open({ database: pooler.url, preparedStatements: false })
    const [submitting, ...working] = await Promise.all([open(), open(), open()])
    const items = Array.from({ length: 500 }, (_, n) => ({ payload: { n } }))
    await submitting.submitMany(noted, items.slice(0, 400))
    const locked = items.slice(400).map((item, n) => ({ ...item, options: { lockKey: `l${n}`, slotKey: `s${n % 7}` } }))
    await submitting.submitMany(noted, locked)
    await submitting.submit(parent, {})
    const stop = new AbortController()
    const worked = working.map((engine) =>
      engine.work({ concurrency: 8, wakeUp: 'none', pollMs: 50, signal: stop.signal }),
    )
    await expect.poll(() => bed.query('select from fencepost.finished_jobs'), { timeout: 60_000 }).toHaveLength(521)
    stop.abort()
    await Promise.all(worked)
    expect(await bed.query(`select from fencepost.jobs where status <> 'completed' or attempts <> 1`)).toEqual([])
    const [ledger] = await bed.query(
      'select count(*)::integer as lines, count(distinct n)::integer as jobs from ledger',
    )
    expect(ledger).toEqual({ lines: 520, jobs: 520 })
    expect(await bed.query('select from fencepost.resource_locks')).toEqual([])
  }, 120_000)
})
