import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, streamClosedEvent, type Client } from '@fencepost/client'
import { openEmbeddedPostgres, openEngine, type EmbeddedPostgres, type Engine } from '@fencepost/engine'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { submitted } from '../../engine/test/bed.ts'
import { openServer, type Server } from '../src/index.ts'
import { echo } from './server-bed.ts'
import { view } from './viewer.ts'

let directory: string
let postgres: EmbeddedPostgres
let engine: Engine
let server: Server
let client: Client
beforeAll(async () => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'fencepost-away-')))
  chmodSync(directory, 0o755) // as root, the embedded Postgres runs as somebody else, who must get there
  postgres = await openEmbeddedPostgres({ directory: join(directory, 'postgres'), durable: false })
  engine = await openEngine({ database: postgres.url, operations: [echo] })
  server = await openServer({ engine, port: 0, metricsMs: 100, sweepMs: 100 })
  client = createClient({ url: server.url })
})
afterAll(async () => {
  await server.close()
  await engine.close()
  await postgres.close()
  rmSync(directory, { recursive: true, force: true })
})

test('while Postgres is away requests are 503 with Retry-After, and all goes on when it is back', async () => {
  const jobId = await submitted(engine.submit(echo, {}))
  const viewer = await view(server.url, `/jobs/${jobId}/events`)
  await viewer.until(1)
  expect(await client.readyz()).toMatchObject({ status: 'ready' })
  expect(await client.metrics()).toMatch(/^fencepost_database_up 1$/m) // whoever has scraped may go on

  const { port } = new URL(postgres.url)
  await postgres.close()
  const requests = [
    ['GET', `/jobs/${jobId}`],
    ['GET', '/jobs'],
    ['GET', `/jobs/${jobId}/events`],
    ['POST', '/operations/echo/jobs'],
    ['POST', `/jobs/${jobId}/cancel`],
    ['GET', '/workers'],
    ['GET', '/readyz'],
  ] as const
  for (const [method, path] of requests) {
    const startedAt = performance.now()
    const headers = { 'content-type': 'application/json' }
    const body = method === 'POST' ? JSON.stringify(path.startsWith('/operations') ? { payload: {} } : {}) : null
    const answer = await fetch(`${server.url}${path}`, { method, headers, body })
    const text = await answer.text()
    expect({ path, status: answer.status }).toEqual({ path, status: 503 })
    expect(Number(answer.headers.get('retry-after')), path).toBeGreaterThan(0)
    expect(text).toContain(path === '/readyz' ? '"not_ready"' : '"database_unavailable"')
    expect(text).not.toMatch(new RegExp(`${port}|ECONN|127\\.0\\.0\\.1|select`, 'i'))
    expect(performance.now() - startedAt).toBeLessThan(3_000)
  }
  expect(await client.healthz()).toMatchObject({ status: 'ok' })
  await expect.poll(() => client.metrics()).toMatch(/^fencepost_database_up 0$/m)

  // On the port that it had, as a database that was restarted has.
  postgres = await openEmbeddedPostgres({ directory: join(directory, 'postgres'), durable: false, settings: { port } })
  await expect
    .poll(() => client.readyz().catch(() => undefined), { timeout: 10_000 })
    .toMatchObject({ status: 'ready' })
  expect((await client.submitJob('echo', { payload: {} })).status).toBe('pending')
  await expect.poll(() => client.metrics(), { timeout: 10_000 }).toMatch(/^fencepost_database_up 1$/m)
  await client.cancelJob(jobId)
  await viewer.ended
  expect(viewer.received.map(({ event }) => event)).toEqual(['job.submitted', 'job.cancelled', streamClosedEvent])
}, 60_000)
