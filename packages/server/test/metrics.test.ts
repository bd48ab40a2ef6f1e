import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimOne, submitted } from '../../engine/test/bed.ts'
import { metricTable } from '../src/metrics/table.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed({ metricsMs: 50 })
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

const soon = { timeout: 15_000, interval: 100 }
const scrape = async () => (await on.http('GET', '/metrics')).text
const value = async (sample: string) => {
  const line = (await scrape()).split('\n').find((one) => one.startsWith(`${sample} `))
  return line === undefined ? undefined : Number(line.slice(sample.length + 1))
}

test('has every metric of the table, with help and type, in the format of Prometheus', async () => {
  const answer = await on.http('GET', '/metrics')
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  for (const [name, { type, help }] of Object.entries(metricTable)) {
    expect(answer.text).toContain(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`)
  }
  for (const line of answer.text
    .trimEnd()
    .split('\n')
    .filter((one) => !one.startsWith('#'))) {
    expect(line).toMatch(/^[a-z_]+(\{([a-z_]+="(?:[^"\\]|\\.)*",?)+\})? (\+Inf|-?[\d.e+-]+)$/)
  }
})

test('counts pending, due, running and waiting jobs by queue and operation, and how old the oldest is', async () => {
  await on.engine.submit('echo', {}, { queue: 'slow' })
  await on.engine.submit('echo', {}, { queue: 'slow', delayMs: 3_600_000 })
  await on.engine.submit('fan', { children: 2 })
  await on.engine.run(await claimOne(on.engine))
  await claimOne(on.engine)
  await on.bed.advance(120_000)
  await expect.poll(() => value('fencepost_jobs_pending{queue="slow",operation="echo"}'), soon).toBe(2)
  await expect.poll(() => value('fencepost_jobs_due{queue="slow",operation="echo"}'), soon).toBe(1)
  await expect.poll(() => value('fencepost_jobs_running{queue="default",operation="echo"}'), soon).toBe(1)
  expect(await value('fencepost_jobs_deferred{queue="default",operation="fan"}')).toBe(1)
  await expect
    .poll(() => value('fencepost_oldest_pending_age_seconds{queue="slow",operation="echo"}'), soon)
    .toBeGreaterThan(119)
})

test('counts what has ended once, with how long it took and how long it waited', async () => {
  const before = (await value('fencepost_jobs_settled_total{operation="echo",outcome="completed"}')) ?? 0
  for (let nth = 0; nth < 5; nth += 1) await on.engine.submit('echo', {})
  await on.engine.submit('failing', {})
  await on.engine.submit('fan', { children: 1 })
  await on.runAll()
  await on.engine.cancel(await submitted(on.engine.submit(echo, {})))
  const settled = (operation: string, outcome: string) => () =>
    value(`fencepost_jobs_settled_total{operation="${operation}",outcome="${outcome}"}`)
  await expect.poll(settled('echo', 'completed'), soon).toBe(before + 6)
  await expect.poll(settled('failing', 'failed'), soon).toBe(1)
  await expect.poll(settled('echo', 'cancelled'), soon).toBe(1)
  await expect.poll(settled('fan', 'completed'), soon).toBe(1)
  expect(await value('fencepost_job_duration_seconds_count{operation="echo",outcome="completed"}')).toBe(before + 6)
  expect(await value('fencepost_job_duration_seconds_bucket{operation="echo",outcome="completed",le="+Inf"}')).toBe(
    before + 6,
  )
  expect(await value('fencepost_queue_wait_seconds_count{queue="default",operation="failing"}')).toBe(1)
  // The job that was cancelled before anybody claimed it has not waited for a claim.
  expect(await value('fencepost_queue_wait_seconds_count{queue="default",operation="echo"}')).toBe(before + 6)
})

test('counts lost leases and what the fence kept out', async () => {
  await on.engine.submit('echo', {})
  const attempt = await claimOne(on.engine)
  await on.bed.advance(31_000)
  await on.engine.sweep()
  expect(await on.engine.complete(attempt, {})).toEqual({ settled: false, why: 'fence_lost' })
  await expect.poll(() => value('fencepost_lease_expiries_total'), soon).toBe(1)
  await expect.poll(() => value('fencepost_stale_writebacks_total'), soon).toBe(1)
})

test('tells of workers, drain, requests and streams', async () => {
  await on.engine.setDrain('all')
  await on.bed.query(
    `insert into fencepost.workers values ('a', 'h', 1, '1', '{}', 1, now(), fencepost.clock()),
            ('b', 'h', 1, '1', '{}', 1, now(), fencepost.clock() - interval '1 hour')`,
  )
  await expect.poll(() => value('fencepost_drain_level'), soon).toBe(2)
  await expect.poll(() => value('fencepost_workers{state="alive"}'), soon).toBe(1)
  await expect.poll(() => value('fencepost_workers{state="lost"}'), soon).toBe(1)
  expect(await value('fencepost_http_streams')).toBe(0)
  expect(await value('fencepost_http_requests_total{method="GET",route="/metrics",status="200"}')).toBeGreaterThan(0)
})
