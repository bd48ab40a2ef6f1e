import { createClient, FencepostApiError } from '@fencepost/client'
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { claimOne, submitted } from '../../engine/test/bed.ts'
import { runServer, type Server } from '../src/index.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'
import { view } from './viewer.ts'

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed()
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

const countJobs = async () =>
  Number((await on.bed.query<{ n: string }>('select count(*) as n from fencepost.jobs'))[0]?.n)

describe('an Idempotency-Key', () => {
  const submit = (key: string, body: unknown = { payload: { a: 1 } }, url = on.url) =>
    on.http('POST', '/operations/echo/jobs', { body, headers: { 'idempotency-key': key }, url })

  test('makes one job of requests that come at once, to two servers', async () => {
    const other = await on.open()
    const key = randomUUID()
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, nth) => submit(key, undefined, nth % 2 === 0 ? on.url : other.url)),
    )
    expect([...new Set(answers.map(({ status }) => status))]).toEqual([202])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === null)).toHaveLength(1)
    expect(await countJobs()).toBe(1)
  })

  test('of a refusal can be used again: nothing was kept', async () => {
    const key = randomUUID()
    await on.engine.setDrain('submissions')
    expect((await submit(key)).status).toBe(503)
    await on.engine.setDrain('off')
    expect((await submit(key)).status).toBe(202)
    expect((await submit(key, { payload: { a: 2 } })).status).toBe(422)
    expect(await countJobs()).toBe(1)
  })

  test('tells an object from a list of its fields, and not the order of fields', async () => {
    const key = randomUUID()
    expect((await submit(key, { payload: { a: { b: 1, c: 2 } } })).status).toBe(202)
    expect((await submit(key, { payload: { a: { c: 2, b: 1 } } })).status).toBe(202)
    const pairs = [
      ['b', 1],
      ['c', 2],
    ]
    expect(await submit(key, { payload: { a: pairs } })).toMatchObject({ status: 422, code: 'idempotency_mismatch' })
    expect(await countJobs()).toBe(1)
  })

  test('is forgotten after 24 hours', async () => {
    const key = randomUUID()
    const first = await submit(key)
    await on.bed.advance(24 * 3_600_000 - 10_000)
    expect((await submit(key)).text).toBe(first.text)
    await on.bed.advance(10_001)
    expect((await submit(key, { payload: { other: true } })).status).toBe(202)
    expect(await countJobs()).toBe(2)
  })

  test('belongs to the token that used it', async () => {
    const key = randomUUID()
    try {
      const tokens = [await on.token('operator', 'a'), await on.token('operator', 'b')]
      for (const token of tokens) {
        const answer = await on.http('POST', '/operations/echo/jobs', {
          token,
          body: { payload: {} },
          headers: { 'idempotency-key': key },
        })
        expect(answer.headers.get('idempotency-replayed')).toBeNull()
      }
      expect(await countJobs()).toBe(2)
    } finally {
      await on.bed.query('delete from fencepost.tokens')
    }
  })
})

test('of 200 cancels and completions at once, each job has one outcome, and the answers agree with it', async () => {
  await on.engine.submitMany(
    echo,
    Array.from({ length: 200 }, () => ({ payload: {} })),
  )
  const attempts = await on.engine.claim({ limit: 200 })
  const outcomes = await Promise.all(
    attempts.map(async (attempt, nth) => {
      const cancel = () => on.http('POST', `/jobs/${attempt.jobId}/cancel`)
      const complete = () => on.engine.complete(attempt, { nth })
      const both = nth % 2 === 0 ? [cancel(), complete()] : [complete(), cancel()]
      const [a, b] = await Promise.all(both)
      const [cancelled, settled] = (nth % 2 === 0 ? [a, b] : [b, a]) as [
        Awaited<ReturnType<typeof cancel>>,
        Awaited<ReturnType<typeof complete>>,
      ]
      return { jobId: attempt.jobId, cancelled, settled }
    }),
  )
  for (const { jobId, cancelled, settled } of outcomes) {
    const job = await on.engine.get(jobId)
    const terminal = (await on.engine.events(jobId)).filter(({ event }) => /^job\.(completed|cancelled)$/.test(event))
    expect(terminal).toHaveLength(1)
    if (cancelled.status === 200) {
      expect(cancelled.json).toMatchObject({ status: 'cancelled' })
      expect(settled).toEqual({ settled: false, why: 'fence_lost' })
      expect(job?.status).toBe('cancelled')
    } else {
      expect(cancelled).toMatchObject({ status: 409, code: 'job_finished' })
      expect(settled).toEqual({ settled: true })
      expect(job?.status).toBe('completed')
    }
  }
})

test('SIGTERM under load: what was answered is there, streams end, new requests are refused, nothing is lost', async () => {
  const engine = await on.bed.open({ operations: [echo] })
  let opened: (server: Server) => void = () => {}
  const listening = new Promise<Server>((resolve) => {
    opened = resolve
  })
  const over = runServer({ engine, port: 0, closeDelayMs: 200, rateLimitBurst: 1e6, onListening: opened })
  const { url } = await listening
  const client = createClient({ url })
  const watched = await submitted(engine.submit(echo, {}, { queue: 'other' }))
  const viewer = await view(url, `/jobs/${watched}/events`)
  const accepted = new Set<string>()
  const refusals = new Set<string>()
  let stopped = false
  const submitter = async () => {
    while (!refusals.has('unreachable')) {
      try {
        accepted.add((await client.submitJob('echo', { payload: {} })).job_id)
        if (accepted.size >= 100 && !stopped) {
          stopped = true
          process.emit('SIGTERM')
        }
      } catch (error) {
        refusals.add(String((error as FencepostApiError).code))
      }
    }
  }
  await Promise.all([...Array.from({ length: 10 }, submitter), viewer.ended])
  expect(await over).toBe(0)
  expect([...refusals].sort()).toEqual(['shutting_down', 'unreachable'])
  expect(viewer.received.at(-1)?.data).toEqual({ reason: 'shutdown' })
  const there = await on.bed.query<{ job_id: string }>(
    `select replace(job_id::text, '-', '') as job_id from fencepost.jobs where queue = 'default'`,
  )
  expect(new Set(there.map((row) => row.job_id))).toEqual(accepted)
})

test('the server sweeps, and removes what is past its time', async () => {
  await on.open({ sweepMs: 20, retainMs: 20 })
  const silent = await submitted(on.engine.submit(echo, {}))
  await claimOne(on.engine)
  const old = await submitted(on.engine.submit(echo, {}))
  await on.engine.cancel(old)
  await on.bed.advance(31_000)
  await expect.poll(async () => (await on.engine.get(silent))?.status).toBe('pending')
  expect(await on.engine.get(old)).toBeDefined()
  await on.bed.advance(91 * 86_400_000)
  await expect.poll(() => on.engine.get(old)).toBeUndefined()
})
