import { routes, type Role, type Route } from '@fencepost/client'
import { createHash } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createToken, listTokens, revokeToken, type ServerOptions } from '../src/index.ts'
import { openServerBed, type ServerBed } from './server-bed.ts'
import { view } from './viewer.ts'

let on: ServerBed
beforeAll(async () => {
  on = await openServerBed({ pingMs: 50 })
})
beforeEach(async () => {
  await on.bed.reset()
  await on.bed.query('delete from fencepost.tokens')
})
afterAll(() => on.close())

const all: readonly Route[] = Object.values(routes)
const guarded = all.filter(({ role }) => role !== 'public')
const pathOf = ({ path }: Route) => path.replaceAll(/\{\w+\}/g, '0'.repeat(32))
const state = () =>
  on.bed.query(
    `select (select count(*) from fencepost.jobs) as jobs, (select count(*) from fencepost.settings) as settings,
            (select count(*) from fencepost.tokens where revoked_at is null) as tokens`,
  )

describe('with tokens', () => {
  test.each(guarded.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s is 401 without one, with an unknown one, with a revoked one',
    async (_, route) => {
      const token = await on.token('admin')
      const revoked = await createToken(on.engine.database, { name: 'gone', role: 'admin' }, undefined)
      await revokeToken(on.engine.database, revoked.token_id, undefined)
      const before = await state()
      const unknown = `${token.slice(0, -4)}${token.endsWith('aaaa') ? 'bbbb' : 'aaaa'}`
      const ask = (headers: Record<string, string>) =>
        on.http(route.method, pathOf(route), { headers, ...(route.method === 'GET' ? {} : { body: {} }) })
      const missing = await ask({})
      expect(missing).toMatchObject({ status: 401, code: 'token_missing' })
      expect(missing.headers.get('www-authenticate')).toMatch(/^Bearer/)
      for (const wrong of [unknown, revoked.token, 'fp_', 'x', `${token} x`, "' or 1=1 --"]) {
        const answer = await ask({ authorization: `Bearer ${wrong}` })
        expect(answer, wrong).toMatchObject({ status: 401, code: 'token_invalid' })
      }
      expect(await ask({ authorization: `Basic ${token}` })).toMatchObject({ status: 401, code: 'token_invalid' })
      expect(await state()).toEqual(before)
    },
  )

  const tooLow = guarded.flatMap((route) =>
    (['viewer', 'operator'] as const)
      .filter((role) => !(route.role === role || route.role === 'viewer'))
      .filter((role) => role === 'viewer' || route.role === 'admin')
      .map((role) => [role, `${route.method} ${route.path}`, route] as const),
  )
  test.each(tooLow)('a %s may not %s', async (role, _, route) => {
    const token = await on.token(role)
    const before = await state()
    const answer = await on.http(route.method, pathOf(route), {
      token,
      ...(route.method === 'GET' ? {} : { body: { level: 'all', name: 'x', role: 'admin', payload: {} } }),
    })
    expect(answer).toMatchObject({ status: 403, code: 'role_insufficient' })
    expect(await state()).toEqual(before)
  })

  test.each(['viewer', 'operator', 'admin'] as const)('a %s may do what his role says', async (role: Role) => {
    const token = await on.token(role)
    const read = await on.http('GET', '/jobs', { token })
    expect(read.status).toBe(200)
    const submit = await on.http('POST', '/operations/echo/jobs', { token, body: { payload: {} } })
    expect(submit.status).toBe(role === 'viewer' ? 403 : 202)
    const drain = await on.http('PUT', '/drain', { token, body: { level: 'off' } })
    expect(drain.status).toBe(role === 'admin' ? 200 : 403)
  })

  test('every change of state records who made it', async () => {
    const token = await on.token('admin', 'alice')
    const submit = async () =>
      (
        (await on.http('POST', '/operations/echo/jobs', { token, body: { payload: {}, pipeline_id: '2'.repeat(32) } }))
          .json as { job_id: string }
      ).job_id
    const [cancelled, recovered, aborted] = [await submit(), await submit(), await submit()]
    await on.http('POST', `/jobs/${cancelled}/cancel`, { token })
    await on.http('DELETE', `/jobs/${cancelled}`, { token })
    await on.engine.claim({ limit: 1 })
    await on.bed.advance(3_600_000)
    await on.http('POST', `/jobs/${recovered}/recover`, { token })
    await on.http('POST', `/pipelines/${'2'.repeat(32)}/abort`, { token })
    await on.http('PUT', '/drain', { token, body: { level: 'submissions' } })
    const by = await on.bed.query<{ event: string; by: string }>(
      `select event, fields ->> 'by' as by from fencepost.job_events where event <> 'job.started' order by id`,
    )
    expect(by.map(({ event, by: who }) => `${event} ${who}`)).toEqual([
      ...Array.from({ length: 3 }, () => 'job.submitted alice'),
      'job.cancelled alice',
      'job.deleted alice',
      'job.recovered alice',
      'job.cancelled alice',
      'job.cancelled alice',
    ])
    expect(aborted).toBeDefined()
    expect((await on.engine.drain()).updatedBy).toBe('alice')
  })

  test('they are shown once, stored as hashes, listed without secrets, revoked, and their use is noted', async () => {
    const admin = await on.token('admin', 'root')
    const made = await on.http('POST', '/tokens', { token: admin, body: { name: 'ci', role: 'operator' } })
    expect(made.status).toBe(201)
    const { token, token_id: tokenId } = routes.createToken.answer.strict().parse(made.json)
    const secret = token.slice(`fp_${tokenId}_`.length)
    const [stored] = await on.bed.query<{ hash: Buffer }>('select hash from fencepost.tokens where token_id = $1', [
      tokenId,
    ])
    expect(stored?.hash).toEqual(createHash('sha256').update(token).digest())
    const dump = JSON.stringify(await on.bed.query('select tokens::text from fencepost.tokens'))
    expect(dump).not.toContain(secret)
    expect((await on.http('GET', '/jobs', { token })).status).toBe(200)
    const listed = await on.http('GET', '/tokens', { token: admin })
    expect(listed.text).not.toContain(secret)
    const tokens = routes.listTokens.answer.parse(listed.json)
    expect(tokens).toMatchObject([
      { name: 'root' },
      { name: 'ci', created_by: 'root', last_used_at: expect.any(String) },
    ])
    expect(await on.http('DELETE', `/tokens/${tokenId}`, { token: admin })).toMatchObject({ status: 204 })
    expect(await on.http('GET', '/jobs', { token })).toMatchObject({ status: 401, code: 'token_invalid' })
    expect(await on.http('DELETE', `/tokens/${tokenId}`, { token: admin })).toMatchObject({ status: 409 })
    for (const id of ['0'.repeat(12), 'x', '%27']) {
      expect(await on.http('DELETE', `/tokens/${id}`, { token: admin })).toMatchObject({ status: 404 })
    }
    for (const body of [
      {},
      { name: '', role: 'admin' },
      { name: 'x', role: 'root' },
      { name: 'x', role: 'admin', id: 1 },
    ]) {
      expect(await on.http('POST', '/tokens', { token: admin, body })).toMatchObject({ status: 400 })
    }
    expect((await listTokens(on.engine.database)).find(({ name }) => name === 'ci')).toMatchObject({
      revoked_by: 'root',
    })
  })

  test('the last admin cannot be revoked, also not by one who is being revoked', async () => {
    const [first, second] = [await on.token('admin'), await on.token('admin')]
    const idOf = (token: string) => token.slice(3, 15)
    const answers = await Promise.all([
      on.http('DELETE', `/tokens/${idOf(first)}`, { token: second }),
      on.http('DELETE', `/tokens/${idOf(second)}`, { token: first }),
    ])
    // Whoever comes second is refused: as the last one, or because it is an admin no more.
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
    const left = (await listTokens(on.engine.database)).filter(({ revoked_at: at }) => at === null)
    const [kept] = left
    const token = idOf(first) === kept?.token_id ? first : second
    expect(left).toHaveLength(1)
    expect(await on.http('DELETE', `/tokens/${kept?.token_id}`, { token })).toMatchObject({ code: 'token_last_admin' })
    expect((await on.http('GET', '/tokens', { token })).status).toBe(200)
  })

  test('one name is that of one token in use', async () => {
    const token = await on.token('admin', 'root')
    const make = () => on.http('POST', '/tokens', { token, body: { name: 'ci', role: 'viewer' } })
    const made = (await make()).json as { token_id: string }
    expect(await make()).toMatchObject({ status: 409, code: 'token_name_taken' })
    await on.http('DELETE', `/tokens/${made.token_id}`, { token })
    expect(await make()).toMatchObject({ status: 201 })
  })

  test('one that has expired is refused, ends its streams, and leaves its name to the next', async () => {
    const admin = await on.token('admin')
    const body = { name: 'ci', role: 'viewer', expires_in_seconds: 3600 }
    const { token, expires_at: at } = (await on.http('POST', '/tokens', { token: admin, body })).json as {
      token: string
      expires_at: string
    }
    expect(at).toMatch(/Z$/)
    expect((await on.http('GET', '/jobs', { token })).status).toBe(200)
    const viewer = await view(on.url, '/events', { authorization: `Bearer ${token}` })
    await on.bed.advance(3_600_001)
    expect(await on.http('GET', '/jobs', { token })).toMatchObject({ status: 401, code: 'token_invalid' })
    await viewer.ended
    expect(viewer.received.at(-1)?.data).toEqual({ reason: 'token_revoked' })
    expect((await on.http('POST', '/tokens', { token: admin, body })).status).toBe(201)
    for (const seconds of [0, -1, 1.5, 1e12]) {
      const answer = await on.http('POST', '/tokens', { token: admin, body: { ...body, expires_in_seconds: seconds } })
      expect(answer).toMatchObject({ status: 400, code: 'request_invalid' })
    }
  })

  test('the last use is written at most once a minute', async () => {
    const token = await on.token('viewer')
    const used = async () => (await listTokens(on.engine.database))[0]?.last_used_at
    await on.http('GET', '/drain', { token })
    const first = await used()
    await on.http('GET', '/drain', { token })
    expect(await used()).toBe(first)
    await on.bed.advance(60_001)
    await on.http('GET', '/drain', { token })
    expect(await used()).not.toBe(first)
  })

  test('a revoked one ends its streams, at this server at once, at others with the next ping', async () => {
    const admin = await on.token('admin')
    const other = await on.open()
    const made = await createToken(on.engine.database, { name: 'v', role: 'viewer' }, undefined)
    const headers = { authorization: `Bearer ${made.token}` }
    const here = await view(on.url, '/events', headers)
    const there = await view(other.url, '/events', headers)
    await on.http('DELETE', `/tokens/${made.token_id}`, { token: admin })
    await Promise.all([here.ended, there.ended])
    for (const viewer of [here, there]) expect(viewer.received.at(-1)?.data).toEqual({ reason: 'token_revoked' })
  })
})

describe('without tokens', () => {
  test('loopback lets everybody in, until the first token, which is an admin’s', async () => {
    expect((await on.http('GET', '/jobs')).status).toBe(200)
    expect(await on.http('POST', '/tokens', { body: { name: 'v', role: 'viewer' } })).toMatchObject({ status: 400 })
    const made = await on.http('POST', '/tokens', { body: { name: 'a', role: 'admin' } })
    expect(made.status).toBe(201)
    expect((await on.http('GET', '/jobs')).status).toBe(401)
    const { token } = made.json as { token: string }
    expect((await on.http('GET', '/jobs', { token })).status).toBe(200)
  })

  test('once all tokens are revoked nobody is let in', async () => {
    const { token_id: tokenId } = await createToken(on.engine.database, { name: 'a', role: 'admin' }, undefined)
    expect(await revokeToken(on.engine.database, tokenId, undefined)).toEqual({ revoked: false, why: 'last_admin' })
    await on.bed.query('update fencepost.tokens set revoked_at = now()')
    expect((await on.http('GET', '/jobs')).status).toBe(401)
  })

  test.each(['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via'])(
    'a request with the header %s came through a proxy, and needs a token',
    async (name) => {
      const headers = { [name]: '203.0.113.7' }
      expect(await on.http('GET', '/jobs', { headers })).toMatchObject({ status: 401, code: 'token_missing' })
      expect(await on.http('GET', '/healthz', { headers })).toMatchObject({ status: 200 })
      const token = await on.token('viewer')
      expect(await on.http('GET', '/jobs', { headers, token })).toMatchObject({ status: 200 })
    },
  )

  test('streams end when the first token is made, at this server at once, at others with the next ping', async () => {
    const other = await on.open({ pingMs: 20 })
    const here = await view(on.url, '/events')
    const there = await view(other.url, '/events')
    expect(await on.http('POST', '/tokens', { body: { name: 'a', role: 'admin' } })).toMatchObject({ status: 201 })
    await Promise.all([here.ended, there.ended])
    for (const viewer of [here, there]) expect(viewer.received.at(-1)?.data).toEqual({ reason: 'token_needed' })
  })

  test('no other address is listened on', async () => {
    for (const host of ['0.0.0.0', '::', 'example.com', outsideAddress()]) {
      await expect(on.open({ host })).rejects.toMatchObject({ code: 'access_unprotected' })
    }
    await on.token('admin')
    const server = await on.open({ host: '0.0.0.0' })
    expect(await on.http('GET', '/jobs', { url: `http://127.0.0.1:${server.port}` })).toMatchObject({ status: 401 })
  })

  test('a web page cannot make a browser change anything', async () => {
    const cancel = `/jobs/${'0'.repeat(32)}/cancel`
    const page = { headers: { origin: 'https://evil.example' } }
    expect(await on.http('POST', cancel, page)).toMatchObject({ status: 403, code: 'origin_refused' })
    const own = { headers: { origin: on.url } }
    expect(await on.http('POST', cancel, own)).toMatchObject({ status: 404 })
  })
})

describe('web pages', () => {
  test('of an origin that was allowed are told so, others are not', async () => {
    const server = await on.open({ corsOrigins: ['https://board.example'] })
    const ask = (method: string, origin: string) =>
      on.http(method, '/jobs', { url: server.url, headers: { origin, 'access-control-request-method': 'GET' } })
    const allowed = await ask('OPTIONS', 'https://board.example')
    expect(allowed.status).toBe(204)
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://board.example')
    expect((await ask('GET', 'https://board.example')).status).toBe(200)
    expect(await ask('OPTIONS', 'https://evil.example')).toMatchObject({ status: 403, code: 'origin_refused' })
    expect((await ask('GET', 'https://evil.example')).headers.get('access-control-allow-origin')).toBeNull()
  })
})

test('too many requests are refused with when to come back, but never those that ask whether the process lives', async () => {
  const server = await on.open({ rateLimitPerSecond: 1, rateLimitBurst: 5 })
  const statuses = []
  for (let nth = 0; nth < 8; nth += 1) statuses.push(await on.http('GET', '/openapi.json', { url: server.url }))
  expect(statuses.map(({ status }) => status).slice(0, 5)).toEqual([200, 200, 200, 200, 200])
  const refused = statuses.at(-1)
  expect(refused).toMatchObject({ status: 429, code: 'rate_limited' })
  expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await on.http('GET', '/healthz', { url: server.url })).toMatchObject({ status: 200 })
})

describe('behind proxies', () => {
  // With a limit of one request, whoever can choose his own address is never refused.
  const many = async (trustProxy: ServerOptions['trustProxy'], forwarded: (nth: number) => string) => {
    const { url } = await on.open({ ...(trustProxy === undefined ? {} : { trustProxy }), ...oneRequest })
    const token = await on.token('viewer')
    const ask = (nth: number) =>
      on.http('GET', '/drain', { url, token, headers: { 'x-forwarded-for': forwarded(nth) } })
    return [(await ask(1)).status, (await ask(2)).status]
  }
  const oneRequest = { rateLimitPerSecond: 1, rateLimitBurst: 1 }

  test.each([1, ['127.0.0.0/8', '::1']])(
    'with trustProxy %j, what the caller wrote into the header is not believed',
    async (trust) => {
      expect(await many(trust, (nth) => `198.51.100.${nth}, 203.0.113.7`)).toEqual([200, 429])
    },
  )

  test.each([1, ['127.0.0.0/8', '::1']])(
    'with trustProxy %j, callers are told apart by what the proxy wrote',
    async (trust) => {
      const { url } = await on.open({ trustProxy: trust, ...oneRequest })
      const ask = (caller: string) => on.http('GET', '/openapi.json', { url, headers: { 'x-forwarded-for': caller } })
      expect((await ask('203.0.113.7')).status).toBe(200)
      expect((await ask('203.0.113.8')).status).toBe(200)
      expect((await ask('203.0.113.7')).status).toBe(429)
    },
  )

  test.each([true, 0, -1, 1.5, [], ['proxy.example'], ['10.0.0.0/33'], ['10.0.0.0/8/8'], 'x'])(
    'trustProxy %j is refused',
    async (trust) => {
      const options = { trustProxy: trust as ServerOptions['trustProxy'] } as Partial<ServerOptions>
      await expect(on.open(options)).rejects.toMatchObject({ code: 'options_invalid' })
    },
  )
})

function outsideAddress(): string {
  const found = Object.values(networkInterfaces())
    .flat()
    .find((address) => address?.internal === false)
  return found?.address ?? '192.0.2.1'
}
