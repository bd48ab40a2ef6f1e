import { routes, type Route } from '@fencepost/client'
import { connect } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openServerBed, type HttpAnswer, type ServerBed } from './server-bed.ts'

let on: ServerBed
const logged: unknown[] = []
beforeAll(async () => {
  const note = (fields: Record<string, unknown>) => void logged.push(fields)
  on = await openServerBed({
    headersTimeoutMs: 1_000,
    requestTimeoutMs: 1_000,
    logger: { info: note, warn: note, error: note },
  })
})
beforeEach(async () => {
  await on.bed.reset()
  logged.length = 0
})
afterAll(() => on.close())

const all: readonly Route[] = Object.values(routes)
const written = async () => {
  const rows = await on.bed.query<{ n: string }>(
    `select (select count(*) from fencepost.jobs) + (select count(*) from fencepost.tokens)
          + (select count(*) from fencepost.settings) + (select count(*) from fencepost.idempotency_keys) as n`,
  )
  return Number(rows[0]?.n)
}
/** A refusal in the one form that there is, with nothing in it of what is inside. */
function expectRefused(answer: HttpAnswer, status: number, code: string): void {
  expect({ status: answer.status, code: answer.code }).toEqual({ status, code })
  expect(answer.text).not.toMatch(/ at .*\.(ts|js):|node_modules|select |insert |postgres(ql)?:|ECONN|relation "/i)
}

const injections = [
  "'; drop table fencepost.live_jobs; --",
  "' or '1'='1",
  '" or ""="',
  '$1',
  '\\',
  '../../etc/passwd',
  '%s%n',
  '{{7*7}}',
  '\u202e\uFEFF💥',
  'a'.repeat(500),
]

describe('times', () => {
  const submit = (runAfter: string) =>
    on.http('POST', '/operations/echo/jobs', { body: { payload: {}, run_after: runAfter } })

  test.each(['9999-12-31T23:59:59-15:00', '0001-01-01T00:00:00+15:00', '0000-06-01T00:00:00Z', '9999-12-31T23:59:60Z'])(
    '%s is no time that RFC 3339 can write in UTC, and is refused',
    async (runAfter) => {
      expectRefused(await submit(runAfter), 400, 'request_invalid')
      expect(await written()).toBe(0)
    },
  )

  test.each([
    ['2026-04-25T14:35:00+16:00', '2026-04-24T22:35:00.000000Z'],
    ['2026-04-25T14:35:00.1234567-23:59', '2026-04-26T14:34:00.123456Z'],
    ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.999999Z'],
    ['9999-12-31T23:59:59+15:59', '9999-12-31T08:00:59.000000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000000Z'],
  ])('%s is %s, for every client that lists jobs', async (runAfter, utc) => {
    expect(await submit(runAfter)).toMatchObject({ status: 202, json: { run_after: utc } })
    expect(await on.client.listJobs()).toMatchObject([{ run_after: utc }])
  })
})

test.each(['9007199254740993', '1e400', '-1E+999', '12345678901234567890'])(
  'the number %s in a payload would change, and is refused with its path',
  async (number) => {
    const refused = await on.http('POST', '/operations/echo/jobs', { raw: `{"payload":{"a":[0,{"b":${number}}]}}` })
    expectRefused(refused, 400, 'request_invalid')
    expect(refused.json).toMatchObject({ error: { details: { issues: [{ path: 'body.payload.a.1.b' }] } } })
    expect(await written()).toBe(0)
  },
)

describe('SQL and other tricks', () => {
  test.each(injections)('%s in a path leads nowhere', async (text) => {
    const named = (path: string) => path.replaceAll(/\{\w+\}/g, encodeURIComponent(text))
    // What is put is made, so there a name that cannot be one is refused.
    const put = await on.http('PUT', named('/schedules/{name}'), { body: { operation: 'echo', every_ms: 60_000 } })
    expect(put.code).toMatch(/^(request_invalid|route_unknown)$/)
    expect(await on.engine.schedules.list()).toEqual([])
    for (const route of all.filter(({ method, path }) => method !== 'PUT' && path.includes('{'))) {
      const path = named(route.path)
      const init = route.method === 'GET' || route.method === 'DELETE' ? {} : { body: {} }
      const answer = await on.http(route.method, path, init)
      expect(answer.status, `${route.method} ${path}`).toBe(404)
      expect(answer.code).toMatch(/_not_found$|_unknown$/)
    }
    expect(await written()).toBe(0)
  })

  test.each(injections)('%s in a query is refused, or finds nothing', async (text) => {
    for (const name of ['status', 'operation', 'queue', 'parent', 'pipeline', 'after', 'limit', 'what']) {
      expectRefused(await on.http('GET', `/jobs?${name}=${encodeURIComponent(text)}`), 400, 'request_invalid')
    }
    const answer = await on.http('GET', `/jobs?lock_key=${encodeURIComponent(text)}`)
    expect(answer).toMatchObject({ status: 200, json: [] })
  })

  test.each(injections)('%s in strings of a body is kept as it is, or refused', async (text) => {
    const strict = ['run_after', 'queue', 'pipeline_id']
    for (const field of strict) {
      const answer = await on.http('POST', '/operations/echo/jobs', { body: { payload: {}, [field]: text } })
      expectRefused(answer, 400, 'request_invalid')
    }
    expect(await written()).toBe(0)
    const body = { payload: { [text]: text }, lock_key: text, slot_key: text, dedup_key: text }
    const kept = await on.http('POST', '/operations/echo/jobs', { body })
    expect(kept).toMatchObject({ status: 202 })
    expect(kept.json).toMatchObject(body)
    expect(await written()).toBe(1)
  })

  test('what Postgres cannot store is refused before it gets there', async () => {
    for (const text of ['\u0000', 'a\u0000b', '\ud800']) {
      for (const field of ['lock_key', 'slot_key', 'dedup_key']) {
        const answer = await on.http('POST', '/operations/echo/jobs', { body: { payload: {}, [field]: text } })
        expectRefused(answer, 400, 'request_invalid')
      }
      const answer = await on.http('POST', '/operations/echo/jobs', { body: { payload: { text } } })
      expectRefused(answer, 400, 'request_invalid')
    }
    expectRefused(await on.http('GET', '/jobs?lock_key=%00'), 400, 'request_invalid')
    expect(await written()).toBe(0)
  })

  test('__proto__ and its like are data', async () => {
    const raw = '{"payload": {"__proto__": {"admin": true}, "constructor": 1}}'
    const answer = await on.http('POST', '/operations/echo/jobs', { raw })
    expect(answer.status).toBe(202)
    expect(answer.text).toContain('"__proto__":{"admin":true}')
    expectRefused(await on.http('POST', '/operations/echo/jobs', { raw: '{"__proto__": {}}' }), 400, 'request_invalid')
  })
})

describe('bodies', () => {
  const submit = (raw: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    on.http('POST', '/operations/echo/jobs', { raw, headers })

  test('of 10 MB are refused', async () => {
    const answer = await raw(
      `POST /operations/echo/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
        `Content-Length: 10485760\r\n\r\n{"payload": "`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 413 /)
    expect(answer).toContain('"code":"body_too_large"')
    const chunked = await raw(
      `POST /operations/echo/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
        `Transfer-Encoding: chunked\r\n\r\n200000\r\n${'x'.repeat(0x20_0000)}\r\n`,
    )
    expect(chunked).toMatch(/^HTTP\/1.1 413 /)
    expect(await written()).toBe(0)
  })

  test('just below the limit are taken, and those that the engine finds too large are 413 too', async () => {
    expect((await submit(`{"payload": {"a": "${'x'.repeat(1_000_000)}"}}`)).status).toBe(202)
    const small = await openServerBed({}, { maxPayloadBytes: 100 })
    try {
      const answer = await small.http('POST', '/operations/echo/jobs', { body: { payload: { a: 'x'.repeat(200) } } })
      expectRefused(answer, 413, 'body_too_large')
    } finally {
      await small.close()
    }
  })

  test.each([
    ['cut off', '{"payload": {'],
    ['not JSON', 'payload=1'],
    ['JSON and more', '{} {}'],
    ['NaN', '{"payload": NaN}'],
    ['a comment', '{} // hi'],
    ['not UTF-8', new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
    ['a lone surrogate in bytes', new Uint8Array([0x22, 0xed, 0xa0, 0x80, 0x22])],
  ])('that are %s are refused', async (_, body) => {
    expectRefused(await submit(body), 400, 'json_malformed')
    expect(await written()).toBe(0)
  })

  test('that are nested deeply are refused, whatever brackets are in their strings', async () => {
    for (const depth of [65, 1_000, 100_000]) {
      expectRefused(await submit(`${'['.repeat(depth)}${']'.repeat(depth)}`), 400, 'json_too_deep')
      expectRefused(await submit(`{"payload":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`), 400, 'json_too_deep')
    }
    expect((await submit(`{"payload": {"a": "${'[{'.repeat(500)}\\""}}`)).status).toBe(202)
    expect((await submit(`{"payload": ${'{"a":'.repeat(60)}1${'}'.repeat(60)}}`)).status).toBe(202)
  })

  test('of other types are refused', async () => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
      'application/xml',
      'x',
    ]) {
      expectRefused(await submit('{}', { 'content-type': type }), 415, 'media_type_unsupported')
    }
  })

  test('where none is wanted are refused', async () => {
    const answer = await on.http('POST', `/jobs/${'0'.repeat(32)}/cancel`, { body: { force: true } })
    expectRefused(answer, 400, 'request_invalid')
  })
})

describe('methods and paths', () => {
  test.each([...new Set(all.map(({ path }) => path))])('%s refuses methods that it does not have', async (path) => {
    const address = path.replaceAll(/\{\w+\}/g, '0'.repeat(32))
    // /jobs/count may be a job as well.
    const isHere = (pattern: string) => new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(address)
    const there = all.filter((route) => isHere(route.path)).map(({ method }) => method as string)
    const allowed = all.filter((route) => route.path === path).map(({ method }) => method)
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].filter((one) => !there.includes(one))) {
      const answer = await on.http(method, address)
      expectRefused(answer, 405, 'method_not_allowed')
      for (const one of allowed) expect(answer.headers.get('allow')).toContain(one)
    }
    expect(await written()).toBe(0)
  })

  test.each(['PROPFIND', 'TRACE', 'QUERY', 'LINK', 'MKCOL'])('%s is refused', async (method) => {
    const answer = await raw(`${method} /jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 405 /)
    expect(answer).toContain('"code":"method_not_allowed"')
  })

  test.each([
    ['//jobs', 404],
    ['/jobs/', 404],
    ['/jobs//cancel', 404],
    ['/JOBS', 404],
    ['/jobs/../tokens', 404],
    ['/jobs/%2e%2e/tokens', 404],
    ['/jobs%2f1', 404],
    ['/jobs;x=1', 404],
    ['/%', 400],
    ['/jobs/%zz', 400],
    ['/jobs/%ff', 400],
    ['/.env', 404],
    [`/jobs/${'x'.repeat(3_000)}`, 404],
    ['/jobs?a=1&a=2', 400],
    ['/jobs?limit=1&limit=2', 400],
    ['/jobs?__proto__=1', 400],
  ])('%s', async (path, status) => {
    const answer = await raw(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer).toContain('{"error":{"code":"')
  })

  test('HEAD is GET without a body', async () => {
    for (const path of ['/jobs', '/healthz', '/events', '/openapi.json']) {
      expect(await on.http('HEAD', path)).toMatchObject({ status: 200, text: '' })
    }
  })
})

describe('what is not even a request', () => {
  test('headers that are too large are 431', async () => {
    const answer = await raw(`GET /jobs HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`)
    expect(answer).toMatch(/^HTTP\/1.1 431 /)
    expect(answer).toContain('"code":"headers_too_large"')
  })

  test.each([
    ['rubbish', 'hello\r\n\r\n'],
    ['two lengths', 'POST /drain HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}'],
    [
      'a length and chunks',
      'PUT /drain HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a bad header', 'GET /jobs HTTP/1.1\r\nHost: x\r\nA B: 1\r\n\r\n'],
  ])('%s is 400', async (_, text) => {
    const answer = await raw(text)
    expect(answer).toMatch(/^HTTP\/1.1 400 /)
    expect(answer).toContain('"code":"http_malformed"')
  })

  test('one that does not arrive in time is 408', async () => {
    expect(await raw('GET /jobs HTTP/1.1\r\nHost: localhost\r\n')).toMatch(
      /^HTTP\/1.1 408 [^]*"code":"request_timeout"/,
    )
    const body =
      'PUT /drain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"le'
    expect(await raw(body)).toMatch(/^HTTP\/1.1 408 /)
    expect(await written()).toBe(0)
  })

  test('a name that is not loopback’s is refused while no token is needed', async () => {
    const answer = await raw('GET /jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1.1 403 [^]*"code":"origin_refused"/)
  })
})

test('an error of the server’s own says nothing but where to look it up', async () => {
  await on.bed.query('alter table fencepost.settings rename column updated_by to by_whom')
  try {
    const answer = await on.http('GET', '/drain')
    expectRefused(answer, 500, 'internal_error')
    const requestId = answer.headers.get('x-request-id')
    expect(answer.json).toMatchObject({ error: { details: { request_id: requestId } } })
    expect(logged).toContainEqual(expect.objectContaining({ request_id: requestId }))
  } finally {
    await on.bed.query('alter table fencepost.settings rename column by_whom to updated_by')
  }
})

test('a database that is away is 503, and says nothing of where it was', async () => {
  const gone = await openServerBed()
  try {
    await gone.engine.close()
    expectRefused(await gone.http('GET', '/jobs'), 503, 'shutting_down')
    expectRefused(await gone.http('GET', '/readyz'), 503, 'not_ready')
    expect(await gone.http('GET', '/healthz')).toMatchObject({ status: 200 })
  } finally {
    await gone.close()
  }
})

/** Sends bytes as they are, and resolves with what comes back before the connection ends. */
async function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(on.server.port, '127.0.0.1', () => socket.write(text))
    let answer = ''
    socket.on('data', (some) => {
      answer += some.toString()
    })
    socket.on('close', () => resolve(answer))
    socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)))
  })
}
