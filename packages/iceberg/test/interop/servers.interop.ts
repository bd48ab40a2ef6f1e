import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, test, vi } from 'vitest'
import { S3Storage } from '../../src/storage/index.ts'
import { startRestCatalog } from './rest-catalog-server.ts'
import type { RestCatalogServer } from './rest-catalog-server.ts'
import { startS3 } from './s3-server.ts'
import type { S3Server } from './s3-server.ts'
import { closedAfterAll, startServer } from './server-process.ts'

const open = closedAfterAll()
let s3: S3Server
let catalog: RestCatalogServer

beforeAll(async () => {
  s3 = open(await startS3({ buckets: ['lake'] }))
  catalog = open(await startRestCatalog({ warehouse: 's3://lake/warehouse', s3, vendCredentials: true }))
})

test('the S3 server keeps what it has from those without its keys', async () => {
  await writeFile(join(s3.root, 'lake', 'secret'), 'kept')
  const answer = await fetch(`${s3.endpoint}/lake/secret`)
  expect(answer.status).toBe(403)
})

test('the REST catalog server makes a table in the S3 server and vends the keys to it', async () => {
  const post = async (path: string, body: unknown): Promise<unknown> => {
    const headers = { 'content-type': 'application/json' }
    const answer = await fetch(`${catalog.uri}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    expect(answer.status, catalog.log()).toBe(200)
    return answer.json()
  }
  await post('namespaces', { namespace: ['made'] })
  const fields = [{ id: 1, name: 'id', type: 'long', required: true }]
  const schema = { type: 'struct', 'schema-id': 0, fields }
  expect(await post('namespaces/made/tables', { name: 'numbers', schema })).toMatchObject({
    'metadata-location': expect.stringMatching(
      /^s3:\/\/lake\/warehouse\/made\/numbers\/metadata\/.*\.metadata\.json$/,
    ) as unknown,
    config: { 's3.access-key-id': s3.accessKeyId, 's3.secret-access-key': s3.secretAccessKey },
  })
})

test('keys of the S3 server work until they are revoked', async () => {
  const keys = { accessKeyId: 'passing', secretAccessKey: 'passing-secret' }
  const storage = new S3Storage({ endpoint: s3.endpoint, credentials: keys })
  await s3.issue(keys)
  await storage.write('s3://lake/passing', Buffer.from('x'))
  await s3.revoke(keys)
  await expect(storage.read('s3://lake/passing')).rejects.toMatchObject({ code: 'storage_denied' })
})

test('a server that does not start leaves nothing behind', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-servers-'))
  vi.stubEnv('TMPDIR', folder)
  try {
    const properties = { 'catalog-impl': 'no.such.Catalog' }
    await expect(startRestCatalog({ warehouse: 's3://lake/none', properties })).rejects.toThrow(/no\.such\.Catalog/)
    const url = 'http://127.0.0.1:1'
    const missing = startServer({ name: 'nothing', command: '/no/such/program', args: [], env: {}, url })
    await expect(missing).rejects.toThrow(/did not start/)
    expect((await readdir(folder)).filter((name) => name.startsWith('fencepost-'))).toEqual([])
  } finally {
    vi.unstubAllEnvs()
    await rm(folder, { recursive: true })
  }
})
