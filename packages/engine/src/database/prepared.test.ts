import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimOne, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { raw } from './sql.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const state = `select current_setting('plan_cache_mode') as mode, current_setting('enable_seqscan') as scans,
                      exists (select from pg_prepared_statements where name ~ '^fencepost-') as prepared`

test('statements are prepared on connections of ours, and planned once', async () => {
  const engine = await bed.open({ maxConnections: 1 })
  await submitted(engine.submit(work, {}))
  const attempt = await claimOne(engine)
  const seen = await attempt.transaction(async (client) => (await client.query(state)).rows)
  expect(seen).toMatchObject([{ prepared: true }])
})

test('a handler’s own transaction is planned as usual, and the next statement of ours is not', async () => {
  const engine = await bed.open({ maxConnections: 1 })
  await submitted(engine.submit(work, {}))
  const attempt = await claimOne(engine)
  const inside = await attempt.transaction(async (client) => (await client.query(state)).rows)
  expect(inside).toMatchObject([{ mode: 'auto', scans: 'on' }])
  expect(await bed.database.query('state', raw(state))).toMatchObject([{ mode: 'force_generic_plan', scans: 'off' }])
})

test('statements of ours are never compiled, whatever the server is set to', async () => {
  const url = new URL(bed.url)
  url.searchParams.set('options', '-c jit=on')
  const engine = await bed.open({ database: url.href.replaceAll('+', '%20'), maxConnections: 1 })
  await submitted(engine.submit(work, {}))
  const attempt = await claimOne(engine)
  const jit = `select setting, reset_val from pg_settings where name = 'jit'`
  const seen = await attempt.transaction(async (client) => (await client.query(jit)).rows)
  expect(seen).toEqual([{ setting: 'off', reset_val: 'on' }])
})

test('without prepared statements nothing is left behind on a connection', async () => {
  const engine = await bed.open({ maxConnections: 1, preparedStatements: false })
  await submitted(engine.submit(work, {}))
  const attempt = await claimOne(engine)
  const seen = await attempt.transaction(async (client) => (await client.query(state)).rows)
  expect(seen).toEqual([{ mode: 'auto', scans: 'on', prepared: false }])
  expect(await engine.complete(attempt)).toEqual({ settled: true })
})
