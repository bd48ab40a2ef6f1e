import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  createTableMetadata,
  RestCatalog,
  stringifyJson,
  tableMetadataToJson,
  type RestCatalogOptions,
  type S3Options,
} from '../../src/index.ts'
import { openStatusServer, type Answer, type Asked, type StatusServer } from './rest-statuses.ts'
import { newTable } from './tables.ts'

let server: StatusServer
afterEach(() => server.close())

const identifier = { namespace: ['a', 'b'], name: 't' }
const metadata = createTableMetadata({ ...newTable, location: 's3://lake/t', nowMs: 1 })
const loadedText = (more: Record<string, unknown> = {}): string =>
  stringifyJson({
    'metadata-location': 's3://lake/t/metadata/1.json',
    metadata: tableMetadataToJson(metadata),
    ...more,
  })
const loaded = (more?: Record<string, unknown>): Answer => ({ status: 200, text: loadedText(more) })
const failure = (status: number, type = '', headers: Record<string, string> = {}): Answer => ({
  status,
  headers,
  body: { error: { code: status, type, message: `told ${status}` } },
})

/** A catalog whose server answers its configuration, and then what the test says. */
async function open(
  answer: (asked: Asked, n: number) => Answer,
  options: Partial<RestCatalogOptions> = {},
  config: unknown = {},
): Promise<RestCatalog> {
  let n = 0
  server = await openStatusServer((asked) => {
    if (asked.path === '/v1/config') return { status: 200, body: config }
    return answer(asked, (n += 1))
  })
  return RestCatalog.open({ name: 'rest', url: server.url, timeoutMs: 2000, maxAttempts: 3, ...options })
}

async function commitAnswered(answer: Answer, options: Partial<RestCatalogOptions> = {}, config?: unknown) {
  const catalog = await open((asked) => (asked.method === 'POST' ? answer : loaded()), options, config)
  const table = await catalog.loadTable(identifier)
  const updates = [{ action: 'set-properties', updates: { a: 'b' } }] as const
  return catalog.commit(table, { requirements: [], updates, idempotencyKey: '01890000-0000-7000-8000-000000000000' })
}

describe('a commit to a REST catalog', () => {
  test.each([500, 501, 502, 503, 504, 520])('answered %i is unknown', async (status) => {
    expect(await commitAnswered(failure(status))).toMatchObject({
      outcome: 'unknown',
      error: { code: 'commit_unknown' },
    })
    expect(server.asked.filter((a) => a.method === 'POST')).toHaveLength(1)
  })

  test('whose connection breaks is unknown', async () => {
    expect(await commitAnswered('reset')).toMatchObject({ outcome: 'unknown' })
  })

  test.each([
    ['nothing', ''],
    ['half of the answer', loadedText().slice(0, 100)],
    ['something else', '<html>gateway</html>'],
  ])('answered 200 with %s is unknown', async (_what, text) => {
    expect(await commitAnswered({ status: 200, text })).toMatchObject({ outcome: 'unknown' })
  })

  test.each([
    [400, 'rejected', 'catalog_rejected'],
    [401, 'rejected', 'catalog_unauthorized'],
    [403, 'rejected', 'catalog_denied'],
    [404, 'rejected', 'table_not_found'],
    [405, 'rejected', 'catalog_unsupported'],
    [409, 'conflict', 'commit_conflict'],
    [419, 'rejected', 'catalog_unauthorized'],
    [422, 'rejected', 'catalog_rejected'],
    [429, 'unavailable', 'catalog_unavailable'],
  ])('answered %i is not applied: %s', async (status, why, code) => {
    expect(await commitAnswered(failure(status))).toMatchObject({ outcome: 'not_applied', why, error: { code } })
  })

  test.each([
    [400, true],
    [403, true],
    [404, true],
    [401, undefined],
    [408, undefined],
    [409, undefined],
    [419, undefined],
    [429, undefined],
  ])('answered %i rules out that another copy is applied later: %s', async (status, final) => {
    const result = await commitAnswered(failure(status))
    expect(result.outcome === 'not_applied' && result.final).toBe(final)
  })

  test('that is throttled says when to come again', async () => {
    expect(await commitAnswered(failure(429, '', { 'retry-after': '7' }))).toMatchObject({ retryAfterMs: 7000 })
  })

  test('that was never sent is not applied', async () => {
    const catalog = await open(() => loaded())
    const table = await catalog.loadTable(identifier)
    await server.close()
    await catalog.loadTable(identifier).catch(() => {}) // meets the connection that was open, and is now closed
    const request = { requirements: [], updates: [{ action: 'set-properties', updates: { a: 'b' } } as const] }
    expect(await catalog.commit(table, request)).toMatchObject({ outcome: 'not_applied', why: 'unavailable' })
  })

  test('carries its key where the server remembers keys, and not elsewhere', async () => {
    await commitAnswered(loaded(), {}, { defaults: { 'idempotency-key-lifetime': 'PT30M' } })
    expect(server.asked.at(-1)?.headers['idempotency-key']).toBe('01890000-0000-7000-8000-000000000000')
    await server.close()
    await commitAnswered(loaded())
    expect(server.asked.at(-1)?.headers['idempotency-key']).toBeUndefined()
  })

  test('sends 64-bit ids whole, and one snapshot to each removal unless it may send many', async () => {
    for (const bulkRemoval of [false, true]) {
      const catalog = await open(() => loaded(), { bulkRemoval })
      const snapshotIds = [9223372036854775807n, 1916084761853986166n]
      await catalog.commit(await catalog.loadTable(identifier), {
        requirements: [{ type: 'assert-ref-snapshot-id', ref: 'main', snapshotId: null }],
        updates: [{ action: 'remove-snapshots', snapshotIds }],
      })
      const body = server.asked.at(-1)?.body ?? ''
      expect(body).toContain(bulkRemoval ? '[9223372036854775807,1916084761853986166]' : '[9223372036854775807]')
      expect(body).toContain('"snapshot-id":null')
      if (!bulkRemoval) await server.close()
    }
  })
})

describe('requests to a REST catalog', () => {
  test.each([
    [404, 'NoSuchTableException', 'table_not_found'],
    [404, 'NoSuchNamespaceException', 'namespace_not_found'],
    [404, '', 'table_not_found'],
    [401, '', 'catalog_unauthorized'],
    [403, '', 'catalog_denied'],
    [419, '', 'catalog_unauthorized'],
    [400, '', 'catalog_rejected'],
  ])('a load answered %i %s fails with %s, at once', async (status, type, code) => {
    const catalog = await open(() => failure(status, type))
    await expect(catalog.loadTable(identifier)).rejects.toMatchObject({ code })
    expect(server.asked).toHaveLength(2)
  })

  test.each([429, 500, 503, 504])('a load answered %i is asked again, and fails when that goes on', async (status) => {
    const catalog = await open((_asked, n) => (n < 3 ? failure(status, '', { 'retry-after': '0' }) : loaded()))
    expect((await catalog.loadTable(identifier)).metadata.tableUuid).toBe(metadata.tableUuid)
    await server.close()
    const never = await open(() => failure(status))
    await expect(never.loadTable(identifier)).rejects.toMatchObject({ code: 'catalog_unavailable' })
    expect(server.asked).toHaveLength(4)
  })

  test('a change is never sent twice', async () => {
    for (const answer of [failure(503), 'reset'] as const) {
      const catalog = await open(() => answer)
      await expect(catalog.dropTable(identifier)).rejects.toMatchObject({ code: 'catalog_unavailable' })
      expect(server.asked).toHaveLength(2)
      if (answer !== 'reset') await server.close()
    }
  })

  test('each kind of 409 has its own name', async () => {
    const catalog = await open(() => failure(409))
    const to = { ...identifier, name: 'other' }
    await expect(catalog.createTable(identifier, newTable)).rejects.toMatchObject({ code: 'table_exists' })
    await expect(catalog.registerTable(identifier, 's3://x')).rejects.toMatchObject({ code: 'table_exists' })
    await expect(catalog.renameTable(identifier, to)).rejects.toMatchObject({ code: 'table_exists' })
    await expect(catalog.createNamespace(['a'])).rejects.toMatchObject({ code: 'namespace_exists' })
    await expect(catalog.dropNamespace(['a'])).rejects.toMatchObject({ code: 'namespace_not_empty' })
  })

  test('the prefix, the levels and the warehouse are where the protocol wants them', async () => {
    const catalog = await open(() => loaded(), { warehouse: 'w h' }, { overrides: { prefix: 'main/lake' } })
    await catalog.loadTable({ namespace: ['a b', 'c/d'], name: 'ü?' })
    expect(server.asked[0]?.query.get('warehouse')).toBe('w h')
    expect(server.asked[1]?.path).toBe('/v1/main/lake/namespaces/a%20b%1Fc%2Fd/tables/%C3%BC%3F')
    expect(server.asked[1]?.query.get('snapshots')).toBe('all')
    await expect(catalog.loadTable({ namespace: ['..'], name: 't' })).rejects.toMatchObject({ code: 'name_invalid' })
  })

  test('defaults give way to what the caller set, overrides do not', async () => {
    const config = { defaults: { a: 'server', b: 'server' }, overrides: { c: 'server' } }
    const catalog = await open(() => loaded(), { properties: { a: 'mine', c: 'mine' } }, config)
    expect(catalog.config.properties).toEqual({ a: 'mine', b: 'server', c: 'server', uri: server.url })
  })

  test('a prefix that is already encoded is sent as it is', async () => {
    const prefix = 'arn%3Aaws%3As3tables%3Abucket%2Flake'
    const catalog = await open(() => loaded(), {}, { overrides: { prefix } })
    await catalog.loadTable(identifier)
    expect(server.asked[1]?.path).toBe(`/v1/${prefix}/namespaces/a%1Fb/tables/t`)
  })

  test('the server sends its clients elsewhere by an override, and not by a default', async () => {
    const elsewhere = await openStatusServer(() => loaded())
    const stayed = await open(() => loaded(), {}, { defaults: { uri: elsewhere.url } })
    await stayed.loadTable(identifier)
    expect(elsewhere.asked).toHaveLength(0)
    await server.close()
    const sent = await open(() => failure(404), {}, { overrides: { uri: elsewhere.url } })
    await sent.loadTable(identifier)
    expect(elsewhere.asked).toHaveLength(1)
    await elsewhere.close()
  })

  test('who is asked to come again much later does not wait', async () => {
    const catalog = await open(() => failure(503, '', { 'retry-after': '3600' }))
    await expect(catalog.loadTable(identifier)).rejects.toMatchObject({
      code: 'catalog_unavailable',
      details: { retryAfterMs: 3_600_000 },
    })
    expect(server.asked).toHaveLength(2)
  })

  test('a namespace that is not empty is recognised by the name of the error, too', async () => {
    const catalog = await open(() => failure(400, 'NamespaceNotEmptyException'))
    await expect(catalog.dropNamespace(['a'])).rejects.toMatchObject({ code: 'namespace_not_empty' })
  })

  test('what the server does not offer is not asked of it', async () => {
    const catalog = await open(() => loaded(), {}, { endpoints: ['GET /v1/{prefix}/namespaces'] })
    const to = { ...identifier, name: 'x' }
    await expect(catalog.renameTable(identifier, to)).rejects.toMatchObject({ code: 'catalog_unsupported' })
    await expect(catalog.registerTable(identifier, 's3://x')).rejects.toMatchObject({ code: 'catalog_unsupported' })
    expect(server.asked).toHaveLength(1)
  })

  test('lists are read to their last page, and one that never ends is refused', async () => {
    const page = (names: string[], next?: string): Answer => ({
      status: 200,
      body: { identifiers: names.map((name) => ({ namespace: ['a'], name })), 'next-page-token': next },
    })
    const catalog = await open((asked) =>
      asked.query.get('pageToken') === '' ? page(['x', 'y'], 'two&=') : page(['z']),
    )
    expect((await catalog.listTables(['a'])).map((t) => t.name)).toEqual(['x', 'y', 'z'])
    expect(server.asked.at(-1)?.query.get('pageToken')).toBe('two&=')
    await server.close()
    const endless = await open(() => page(['x'], 'again'))
    await expect(endless.listTables(['a'])).rejects.toMatchObject({ code: 'catalog_invalid' })
  })

  test('an unchanged table is recognised by its tag', async () => {
    const catalog = await open((asked) =>
      asked.headers['if-none-match'] === '"one"'
        ? { status: 304 }
        : { status: 200, text: loadedText(), headers: { etag: '"one"' } },
    )
    const known = await catalog.loadTable(identifier)
    expect(await catalog.loadTable(identifier, { known })).toBe(known)
  })

  test('credentials are asked for, and kept apart from the table', async () => {
    const config = { 's3.endpoint': 'http://localhost:1' }
    const credentials = [{ prefix: 's3://lake/t', config: { 's3.access-key-id': 'k', 's3.secret-access-key': 's' } }]
    const catalog = await open(() => loaded({ config, 'storage-credentials': credentials }))
    const table = await catalog.loadTable(identifier)
    expect(server.asked.at(-1)?.headers['x-iceberg-access-delegation']).toBe('vended-credentials')
    expect(table.config).toEqual(config)
    expect(JSON.stringify(table.config)).not.toContain('secret')
  })

  test('what the catalog said of the storage holds after a commit', async () => {
    const config = { 's3.endpoint': 'http://localhost:1' }
    const catalog = await open((asked) => loaded(asked.method === 'POST' ? {} : { config }))
    const table = await catalog.loadTable(identifier)
    const updates = [{ action: 'set-properties', updates: { a: 'b' } }] as const
    const result = await catalog.commit(table, { requirements: [], updates })
    expect(result).toMatchObject({ outcome: 'applied', table: { config, storage: table.storage } })
  })

  test('a catalog that wants to sign requests to S3 itself is refused, unless there are credentials', async () => {
    const signing = { 's3.remote-signing-enabled': 'true', 's3.endpoint': 'http://127.0.0.1:1' }
    const vended = { ...signing, 's3.access-key-id': 'k', 's3.secret-access-key': 's' }
    const own = { maxAttempts: 1, credentials: { accessKeyId: 'k', secretAccessKey: 's' } }
    const readError = async (config: Record<string, string>, s3: S3Options = { maxAttempts: 1 }): Promise<unknown> => {
      const catalog = await open(() => loaded({ config }), { s3 })
      const { storage } = await catalog.loadTable(identifier)
      const error = await storage.read('s3://lake/t/data/x').catch((thrown: unknown) => thrown)
      await server.close()
      return error
    }
    expect(await readError(signing)).toMatchObject({
      code: 'storage_unsupported',
      message: expect.stringContaining('s3.remote-signing-enabled') as unknown,
    })
    expect(await readError(vended)).toMatchObject({ code: 'storage_failed' })
    expect(await readError(signing, own)).toMatchObject({ code: 'storage_failed' })
  })
})

describe('tokens', () => {
  const oauth2 = { type: 'oauth2', clientId: 'me', clientSecret: 'hush', scope: 'all' } as const

  /** Gives tokens t1, t2, … and takes only the newest. */
  async function openGuarded(expiresIn: number | undefined, refuse: number) {
    let given = 0
    server = await openStatusServer((asked) => {
      if (asked.path === '/v1/oauth/tokens') {
        given += 1
        return { status: 200, body: { access_token: `t${given}`, token_type: 'bearer', expires_in: expiresIn } }
      }
      if (asked.headers.authorization !== `Bearer t${given}`) return failure(refuse)
      return asked.path === '/v1/config' ? { status: 200, body: {} } : loaded()
    })
    const revoke = (): void => void (given += 1)
    return {
      catalog: await RestCatalog.open({ name: 'rest', url: server.url, auth: oauth2 }),
      revoke,
      given: () => given,
    }
  }

  test('one is asked for with the client credentials, and used until it expires', async () => {
    const { catalog, given } = await openGuarded(3600, 401)
    await Promise.all([catalog.loadTable(identifier), catalog.loadTable(identifier)])
    expect(given()).toBe(1)
    const form = new URLSearchParams(server.asked[0]?.body)
    expect(Object.fromEntries(form)).toEqual({
      grant_type: 'client_credentials',
      client_id: 'me',
      client_secret: 'hush',
      scope: 'all',
    })
  })

  test('one that is about to expire is renewed first', async () => {
    const { catalog, given } = await openGuarded(0, 401)
    await catalog.loadTable(identifier)
    await catalog.loadTable(identifier)
    expect(given()).toBeGreaterThan(2)
  })

  test.each([401, 419])('one that is refused with %i is renewed once, also for a commit', async (status) => {
    const { catalog, revoke } = await openGuarded(3600, status)
    const table = await catalog.loadTable(identifier)
    revoke()
    const updates = [{ action: 'set-properties', updates: { a: 'b' } }] as const
    expect((await catalog.commit(table, { requirements: [], updates })).outcome).toBe('applied')
  })

  test.each(['the token cannot be renewed', 'the connection is refused'])(
    'a commit that was sent with an expired token, after which %s, is unknown',
    async (what) => {
      const { catalog, revoke } = await openGuarded(3600, 401)
      const table = await catalog.loadTable(identifier)
      revoke()
      const updates = [{ action: 'set-properties', updates: { a: 'b' } }] as const
      const send = globalThis.fetch
      const sent = vi.spyOn(globalThis, 'fetch')
      const refused = new TypeError('fetch failed', { cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }) })
      let posts = 0
      sent.mockImplementation(async (input, init) => {
        const isToken = (input instanceof Request ? input.url : String(input)).endsWith('/tokens')
        if (isToken ? what.startsWith('the token') : (posts += 1) > 1) throw refused
        return send(input, init)
      })
      try {
        expect((await catalog.commit(table, { requirements: [], updates })).outcome).toBe('unknown')
        expect(posts).toBe(what.startsWith('the token') ? 1 : 2)
      } finally {
        sent.mockRestore()
      }
    },
  )

  test('a token that cannot be had for a moment is asked for again', async () => {
    server = await openStatusServer((asked, n) => {
      if (n === 1) return failure(503)
      if (asked.path === '/v1/oauth/tokens') return { status: 200, body: { access_token: 't' } }
      return asked.headers.authorization === 'Bearer t' ? { status: 200, body: {} } : failure(401)
    })
    await RestCatalog.open({ name: 'rest', url: server.url, auth: oauth2 })
    expect(server.asked.map((asked) => asked.path)).toEqual(['/v1/oauth/tokens', '/v1/oauth/tokens', '/v1/config'])
  })

  test.each([
    ['no JSON', '<html>'],
    ['no token', '{"token_type":"bearer"}'],
  ])('an answer with %s is not a token', async (_what, text) => {
    server = await openStatusServer(() => ({ status: 200, text }))
    const opened = RestCatalog.open({ name: 'rest', url: server.url, auth: oauth2 })
    await expect(opened).rejects.toMatchObject({ code: 'catalog_invalid' })
  })

  test('the secret does not follow where the token endpoint points to', async () => {
    server = await openStatusServer((asked) =>
      asked.path === '/elsewhere'
        ? { status: 200, body: { access_token: 't' } }
        : { status: 307, headers: { location: '/elsewhere' } },
    )
    const opened = RestCatalog.open({ name: 'rest', url: server.url, auth: oauth2, maxAttempts: 1 })
    await expect(opened).rejects.toMatchObject({ code: 'catalog_unavailable' })
    expect(server.asked.map((asked) => asked.path)).toEqual(['/v1/oauth/tokens'])
  })

  test('a client that is not known is told so, without its secret', async () => {
    server = await openStatusServer(({ body }) => ({ status: 401, body: { error: 'invalid_client', body } }))
    const opened = RestCatalog.open({ name: 'rest', url: server.url, auth: oauth2 })
    await expect(opened).rejects.toMatchObject({ code: 'catalog_unauthorized' })
    await expect(opened).rejects.not.toThrow(/hush/)
  })

  test('a bearer token is sent as it is, or as it is now', async () => {
    let token = 'first'
    const auth = { type: 'bearer', token: async () => token } as const
    const catalog = await open((asked) => (asked.headers.authorization === 'Bearer second' ? loaded() : failure(403)), {
      auth,
    })
    await expect(catalog.loadTable(identifier)).rejects.toMatchObject({ code: 'catalog_denied' })
    token = 'second'
    await catalog.loadTable(identifier)
  })
})
