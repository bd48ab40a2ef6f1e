import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { submitted } from '../../engine/test/bed.ts'
import { echo, openServerBed, type ServerBed } from './server-bed.ts'

// What whoever runs a server looks for: in the log, in the headers, in a browser.

interface Line {
  level: string
  message: string
  fields: Record<string, unknown>
}

const lines: Line[] = []
const at = (level: string) => (fields: Record<string, unknown>, message: string) => {
  lines.push({ level, message, fields })
}
const logger = { info: at('info'), warn: at('warn'), error: at('error') }
const logged = (message: string) => lines.filter((line) => line.message === message)

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed({ logger, accessLog: true })
})
beforeEach(async () => {
  await on.bed.reset()
  await on.bed.query('delete from fencepost.tokens')
  lines.length = 0
})
afterAll(() => on.close())

describe('the log', () => {
  test('has a line for every request, with its id, caller, status and time, and not its query', async () => {
    const token = await on.token('viewer', 'ada')
    const answer = await on.http('GET', '/jobs?status=pending', { token })
    await expect.poll(() => logged('request')).toHaveLength(1)
    expect(logged('request')[0]).toEqual({
      level: 'info',
      message: 'request',
      fields: {
        request_id: answer.headers.get('x-request-id'),
        caller: 'ada',
        address: '127.0.0.1',
        method: 'GET',
        path: '/jobs',
        status: 200,
        ms: expect.any(Number),
      },
    })
  })

  test('names who was denied, and who changed tokens and drain', async () => {
    const [admin, viewer] = [await on.token('admin', 'root'), await on.token('viewer', 'eve')]
    await on.http('GET', '/jobs')
    await on.http('PUT', '/drain', { token: viewer, body: { level: 'all' } })
    await on.http('PUT', '/drain', { token: admin, body: { level: 'off' } })
    await on.http('POST', '/tokens', { token: admin, body: { name: 'ci', role: 'viewer' } })
    await expect.poll(() => logged('administered')).toHaveLength(2)
    expect(logged('request_denied').map(({ level, fields }) => [level, fields['caller'], fields['status']])).toEqual([
      ['warn', null, 401],
      ['warn', 'eve', 403],
    ])
    expect(logged('administered').map(({ fields }) => [fields['caller'], fields['path']])).toEqual([
      ['root', '/drain'],
      ['root', '/tokens'],
    ])
    expect(JSON.stringify(lines)).not.toContain(admin)
  })

  test('joins a request and its trace to the job', async () => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    const headers = { 'x-request-id': 'edge-7/a', traceparent: `00-${trace}-00f067aa0ba902b7-01` }
    const answer = await on.http('POST', '/operations/echo/jobs', { body: { payload: {} }, headers })
    expect(answer.headers.get('x-request-id')).toBe('edge-7/a')
    const { job_id: jobId } = answer.json as { job_id: string }
    expect(logged('job_submitted')).toMatchObject([
      { fields: { request_id: 'edge-7/a', trace_id: trace, job_id: jobId, operation: 'echo', caller: 'local' } },
    ])
  })

  test.each(['', 'a b', 'x'.repeat(129), 'é', 'a"b'])('a request id %j is replaced by one of its own', async (id) => {
    const answer = await on.http('GET', '/healthz', { headers: { 'x-request-id': id } })
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe('answers', () => {
  test('that have not changed are 304', async () => {
    const jobId = await submitted(on.engine.submit(echo, {}))
    const first = await on.http('GET', `/jobs/${jobId}`)
    const etag = first.headers.get('etag') ?? ''
    expect(first.headers.get('cache-control')).toBe('private, no-cache')
    const again = await on.http('GET', `/jobs/${jobId}`, { headers: { 'if-none-match': `"other", ${etag}` } })
    expect(again).toMatchObject({ status: 304, text: '' })
    await on.engine.cancel(jobId)
    const changed = await on.http('GET', `/jobs/${jobId}`, { headers: { 'if-none-match': etag } })
    expect(changed.status).toBe(200)
    expect(changed.headers.get('etag')).not.toBe(etag)
  })

  test('that are long are compressed for those who accept it', async () => {
    const jobId = await submitted(on.engine.submit(echo, { text: 'x'.repeat(5_000) }))
    const ask = (encoding: string) => on.http('GET', `/jobs/${jobId}`, { headers: { 'accept-encoding': encoding } })
    for (const encoding of ['gzip', 'br;q=1.0, gzip;q=0.8']) {
      const packed = await ask(encoding)
      expect([packed.headers.get('content-encoding'), packed.headers.get('vary')]).toEqual(['gzip', 'Accept-Encoding'])
      expect(packed.json).toMatchObject({ payload: { text: 'x'.repeat(5_000) } })
    }
    for (const encoding of ['identity', 'gzip;q=0', 'br, gzip; q=0.0']) {
      expect((await ask(encoding)).headers.get('content-encoding')).toBeNull()
    }
  })

  test('at the address itself are a page that links to the others', async () => {
    const { status, headers, text } = await on.http('GET', '/')
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    for (const path of ['docs', 'openapi.json', 'metrics']) expect(text).toContain(`href="${path}"`)
  })
})

test('metrics tell how long routes took, of the pool and of the event loop', async () => {
  await on.http('GET', '/jobs')
  const text = async () => (await on.http('GET', '/metrics')).text
  await expect
    .poll(text)
    .toMatch(/fencepost_http_request_duration_seconds_bucket\{method="GET",route="\/jobs",le="\+Inf"\} [1-9]/)
  expect(await text()).toMatch(/fencepost_pool_connections\{state="idle"\} \d+\n/)
  expect(await text()).toMatch(/nodejs_eventloop_lag_seconds\{stat="p99"\} [\d.e-]+\n/)
})
