import { beforeAll, describe, expect, test } from 'vitest'
import { createTable, DuckDb, RestCatalog, type NewTable, type RestAuth, type Table } from '../../src/index.ts'
import { startAuthServer, type AuthServer } from './auth-server.ts'
import { startRestCatalog, type RestCatalogServer } from './rest-catalog-server.ts'
import { openGateway, type RestGateway } from './rest-gateway.ts'
import { s3Address, s3Properties, startS3, type S3Keys, type S3Server } from './s3-server.ts'
import { ourRows } from './same-rows.ts'
import { closedAfterAll } from './server-process.ts'

// Tokens that a real authorization server issues, and ends; keys that a real S3 server takes, and takes no longer. What
// stands between the catalog and us only shows the one to those who ask, and asks for the other.

const opened = closedAfterAll()
let s3: S3Server
let rest: RestCatalogServer
let auth: AuthServer
let duckDb: DuckDb
beforeAll(async () => {
  s3 = opened(await startS3({ buckets: ['lake'] }))
  rest = opened(await startRestCatalog({ warehouse: 's3://lake/warehouse', s3 }))
  auth = opened(await startAuthServer({ lifeSeconds: 4 }))
  duckDb = opened(await DuckDb.open({ threads: 1 }))
})

const made: NewTable = { schema: { fields: [{ id: 1, name: 'n', required: true, type: { type: 'long' } }] } }
let count = 0
async function newTable(catalog: RestCatalog): Promise<Table> {
  const namespace = [`ns${(count += 1)}`]
  await catalog.createNamespace(namespace)
  return createTable(catalog, { namespace, name: 't' }, made, { duckDb })
}
const append = (table: Table, n: number): Promise<unknown> => table.append([{ n: BigInt(n) }])
const read = async (table: Table): Promise<string[]> =>
  (await ourRows(table, duckDb)).map((row) => JSON.stringify(row['n'])).toSorted()

describe('keys that a catalog hands out', () => {
  const keys = (name: string): S3Keys => ({ accessKeyId: `${name}-key`, secretAccessKey: `${name}-secret` })

  async function openVending(first: S3Keys, endsInMs?: number) {
    let vended = first
    let lifeMs = endsInMs
    const vends = (): Record<string, string> => {
      const ends = lifeMs === undefined ? {} : { 's3.session-token-expires-at-ms': String(Date.now() + lifeMs) }
      return { ...s3Properties(s3, vended), ...ends }
    }
    const gateway = opened(await openGateway({ uri: rest.uri, vends }))
    await s3.issue(first)
    const catalog = await RestCatalog.open({ name: 'rest', url: gateway.uri, properties: s3Address(s3) })
    const change = async (to: S3Keys): Promise<void> => {
      await s3.issue(to)
      vended = to
      lifeMs = undefined
    }
    return { catalog, gateway, change }
  }
  const asked = (gateway: RestGateway): number =>
    gateway.answered.filter((line) => line.endsWith('/credentials')).length

  test('are renewed before they end, and a table that is open goes on', async () => {
    const [first, second] = [keys('ending'), keys('lasting')]
    // The SDK renews what has less than five minutes left.
    const { catalog, gateway, change } = await openVending(first, 5 * 60_000 + 12_000)
    const table = await newTable(catalog)
    await append(table, 1)
    expect(asked(gateway)).toBe(0)
    await change(second)
    await expect.poll(async () => (await read(table), asked(gateway)), { timeout: 60_000, interval: 500 }).toBe(1)
    await s3.revoke(first)
    await append(table, 2)
    expect(await read(table)).toEqual(['"1"', '"2"'])
    expect(asked(gateway)).toBe(1)
  })

  test('are renewed when they were ended without notice', async () => {
    const [first, second] = [keys('revoked'), keys('next')]
    const { catalog, gateway, change } = await openVending(first)
    const table = await newTable(catalog)
    await append(table, 1)
    await change(second)
    await s3.revoke(first)
    expect(await read(table)).toEqual(['"1"'])
    await append(table, 2)
    expect(await read(table)).toEqual(['"1"', '"2"'])
    expect(asked(gateway)).toBe(1)
    await s3.revoke(second)
    await expect(read(table)).rejects.toMatchObject({ code: 'storage_denied' })
  })
})

describe('tokens of an authorization server', () => {
  async function openGuarded(client: Partial<RestAuth & { type: 'oauth2' }> = {}) {
    const admits = (token: string): Promise<boolean> => auth.isActive(token)
    const gateway = opened(await openGateway({ uri: rest.uri, admits }))
    const { tokenUrl, clientId, clientSecret } = auth
    const oauth2 = { type: 'oauth2', tokenUrl, clientId, clientSecret, ...client } as const
    const open = (): Promise<RestCatalog> =>
      RestCatalog.open({ name: 'rest', url: gateway.uri, auth: oauth2, properties: s3Properties(s3) })
    const refused = (): string[] => gateway.answered.filter((line) => line.startsWith('401'))
    return { gateway, open, refused }
  }

  test('are asked for, and renewed before they end, without one refusal', async () => {
    const { open, refused, gateway } = await openGuarded()
    const issued = auth.issued()
    const catalog = await open()
    const table = await newTable(catalog)
    await append(table, 1)
    const until = Date.now() + 9000
    await expect
      .poll(async () => (await table.refresh(), Date.now() > until), { timeout: 20_000, interval: 300 })
      .toBe(true)
    await append(table, 2)
    expect(refused()).toEqual([])
    expect(auth.issued() - issued).toBeGreaterThan(2)
    expect(auth.issued() - issued).toBeLessThan(gateway.answered.length / 2)
  })

  test('are renewed when they were revoked, also for a commit', async () => {
    const { open, refused } = await openGuarded()
    const table = await newTable(await open())
    await auth.revokeAll()
    await append(table, 1)
    expect(refused()).toHaveLength(1)
    expect(await read(table)).toEqual(['"1"'])
  })

  test.each([
    ['a wrong secret', { clientSecret: 'wrong' }],
    ['an unknown client', { clientId: 'nobody' }],
  ])('are not given to %s', async (_who, client) => {
    const { open } = await openGuarded(client)
    await expect(open()).rejects.toMatchObject({ code: 'catalog_unauthorized' })
    await expect(open()).rejects.not.toThrow(auth.clientSecret)
  })

  test("are also given by the catalog's own endpoint, where older servers have it", async () => {
    const oauth2 = { type: 'oauth2', clientId: 'me', clientSecret: 'hush' } as const
    const tokens: string[] = []
    const admits = async (token: string): Promise<boolean> => tokens.push(token) > 0
    const gateway = opened(await openGateway({ uri: rest.uri, admits }))
    const tokenUrl = `${rest.uri}/v1/oauth/tokens`
    await RestCatalog.open({ name: 'rest', url: gateway.uri, auth: { ...oauth2, tokenUrl } })
    expect(tokens).toEqual(['client-credentials-token:sub=me'])
    await RestCatalog.open({ name: 'rest', url: rest.uri, auth: oauth2 })
  })
})
