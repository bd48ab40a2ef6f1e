import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { raw } from '../../src/database/sql.ts'
import type { Engine } from '../../src/engine.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { LosingProxy } from './losing-proxy.ts'

// A host that loses power says nothing: Postgres still has its sessions, with all that they hold. The limits that the
// engine sets end them. Short ones here; docs/guides/workers.md has the defaults.

let bed: Bed
let proxy: LosingProxy
let vanishing: Engine
let vanishAt: string | undefined
beforeEach(async () => {
  bed = await openBed()
  proxy = await LosingProxy.open(bed.url)
  vanishAt = undefined
  vanishing = await bed.open(
    { database: proxy.url, idleTransactionTimeoutMs: 500, answerTimeoutMs: 2_000 },
    {
      pausePoint: async ({ statement }) => {
        if (statement === vanishAt) proxy.fallSilent('all')
      },
    },
  )
})
afterEach(async () => {
  await proxy.close()
  await bed.close()
})

/** Lets the host vanish before it sends this statement; what it was doing comes to nothing. */
function vanish(statement: string, work: Promise<unknown>): Promise<unknown> {
  vanishAt = statement
  return work.catch(() => undefined)
}

describe('a host that vanishes', () => {
  test.each(['sweep.expire', 'sweep.fail', 'close', 'sweep.locks'])(
    'in a sweep, before %s, keeps no other process from sweeping',
    async (statement) => {
      // Something for every statement to do.
      const failing = await submitted(bed.engine.submit(work, {}, { maxAttempts: 1 }))
      await claimOne(bed.engine)
      const cancelled = await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
      await claimOne(bed.engine)
      await bed.engine.cancel(cancelled)
      const expiring = await submitted(bed.engine.submit(work, {}))
      await claimOne(bed.engine)
      await bed.advance(60_000)
      const vanished = vanish(statement, vanishing.sweep())
      await expect
        .poll(async () => {
          await bed.engine.sweep()
          return [(await bed.engine.get(expiring))?.status, (await bed.engine.get(failing))?.status]
        })
        .toEqual(['pending', 'failed'])
      await vanished
    },
  )

  test('in a submission with a lock keeps the lock from others for as long as its transaction may be idle', async () => {
    const vanished = vanish('submit.jobs', vanishing.submit(work, {}, { lockKey: 'l' }))
    await expect.poll(() => idleTransactions()).toBe(1)
    expect(await bed.engine.submit(work, {}, { lockKey: 'l' })).toMatchObject({ submitted: true })
    await vanished
  })

  test('in attempt.transaction() keeps cancel waiting for as long as its transaction may be idle', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(vanishing)
    const vanished = attempt
      .transaction(async (client) => {
        await client.query('select 1')
        proxy.fallSilent('all')
        await client.query('select 2')
      })
      .catch(() => undefined)
    await expect.poll(() => idleTransactions()).toBe(1)
    expect(await bed.engine.cancel(jobId)).toMatchObject({ cancelled: true })
    await proxy.close()
    await vanished
  })
})

describe('every connection of the engine', () => {
  test('has limits that Postgres keeps', async () => {
    const [row] = await bed.engine.database.query<Record<string, string>>('limits', limitsOf)
    expect(row).toEqual({ idle: '30s', lock: '1min', statement: '125s', probes: '3', check: '10s' })
  })

  test('leaves the statements of attempt.transaction() their time, and limits only how long it may be idle', async () => {
    await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(bed.engine)
    const { text } = limitsOf
    const { rows } = (await attempt.transaction((client) => client.query(text))) as { rows: unknown[] }
    expect(rows).toMatchObject([{ idle: '30s', lock: '0', statement: '0' }])
  })

  test('has them in its transactions where it is a pooler’s', async () => {
    const pooled = await bed.open({ preparedStatements: false })
    const inside = await pooled.database.transaction('limits', (db) => db.query('limits', limitsOf))
    expect(inside).toMatchObject([{ idle: '30s', lock: '1min', statement: '125s' }])
    expect(await pooled.database.query('limits', limitsOf)).toMatchObject([{ idle: '0', lock: '0', statement: '0' }])
  })
})

const limitsOf = raw(`
  select current_setting('idle_in_transaction_session_timeout') as idle, current_setting('lock_timeout') as lock,
         current_setting('statement_timeout') as statement, current_setting('tcp_keepalives_count') as probes,
         current_setting('client_connection_check_interval') as check`)

async function idleTransactions(): Promise<number> {
  const rows = await bed.query(`select from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%'`)
  return rows.length
}
