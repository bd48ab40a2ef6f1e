import pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Gate, openBed, submitted, work, type Bed } from '../test/bed.ts'
import { channelOf } from './wake.ts'

let bed: Bed
let listener: pg.Client
let heard: unknown[]

beforeAll(async () => {
  bed = await openBed({ wakeDelayMs: 50 })
  listener = new pg.Client({ connectionString: bed.url })
  await listener.connect()
  await listener.query(`listen "${channelOf('fencepost')}"`)
  listener.on('notification', ({ payload }) => heard.push(JSON.parse(payload ?? 'null')))
})
beforeEach(async () => {
  await bed.reset()
  heard = []
})
afterAll(async () => {
  await listener.end()
  await bed.close()
})

/** A round trip: whatever was sent before it has arrived when it answers. */
const settleDown = async (engine = bed.engine) => {
  await engine.close()
  await listener.query('select 1')
}

test('the first is announced at once, and those that follow are announced together', async () => {
  const gate = new Gate()
  const engine = await bed.open({ wakeDelayMs: 60_000 }, { pausePoint: gate.pausePoint })
  await Promise.all(Array.from({ length: 20 }, () => engine.submit(work, {})))
  await expect.poll(() => heard).toEqual([{ kind: 'wake', queue: 'default' }])
  for (let n = 0; n < 5; n += 1) await engine.submit(work, {})
  await engine.submitMany(work, [{ payload: {} }, { payload: {}, options: { queue: 'other' } }])
  await listener.query('select 1')
  expect(heard).toHaveLength(1)
  await settleDown(engine)
  expect(heard.slice(1)).toEqual([
    { kind: 'wake', queue: 'default' },
    { kind: 'wake', queue: 'other' },
  ])
  expect(gate.seen.filter((statement) => statement === 'wake')).toHaveLength(2)
})

test('a lone submission is announced right behind it; what follows at once is announced together', async () => {
  const gate = new Gate()
  const engine = await bed.open({ wakeDelayMs: 60_000 }, { pausePoint: gate.pausePoint })
  await engine.submit(work, {})
  await expect.poll(() => heard).toEqual([{ kind: 'wake', queue: 'default' }])
  await engine.submit(work, {})
  await listener.query('select 1')
  expect(heard).toHaveLength(1)
  const announced = () => gate.seen.filter((statement) => statement === 'wake').length
  expect(announced()).toBe(1)
  await settleDown(engine)
  expect(announced()).toBe(2)
})

test('no notification rides in a caller’s transaction', async () => {
  const engine = await bed.open({ wakeDelayMs: 60_000 })
  const client = new pg.Client({ connectionString: bed.url })
  await client.connect()
  await client.query('begin')
  await submitted(engine.submit(work, {}, { client, lockKey: 'l' }))
  await client.query('commit')
  await client.end()
  await listener.query('select 1')
  expect(heard).toEqual([])
  engine.wake()
  await settleDown(engine)
  expect(heard).toEqual([{ kind: 'wake', queue: 'default' }])
})

test('nothing is announced for what was not submitted', async () => {
  const engine = await bed.open({ wakeDelayMs: 60_000 })
  await submitted(bed.engine.submit(work, {}, { lockKey: 'l' }))
  await engine.submit(work, {}, { lockKey: 'l' })
  heard = []
  await settleDown(engine)
  expect(heard.filter((notice) => (notice as { kind: string }).kind !== 'wake')).toEqual([])
})

test('a cancelled attempt is announced by its fence', async () => {
  const engine = await bed.open({ wakeDelayMs: 60_000 })
  const jobId = await submitted(engine.submit(work, {}))
  const [attempt] = await engine.claim()
  await engine.cancel(jobId)
  await settleDown(engine)
  expect(heard).toContainEqual({ kind: 'cancel', job_id: jobId, attempt_id: attempt?.attemptId })
})
