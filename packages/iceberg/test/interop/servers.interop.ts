import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startRestCatalog } from './rest-catalog-server.ts'
import type { RestCatalogServer } from './rest-catalog-server.ts'
import { startS3 } from './s3-server.ts'
import type { S3Server } from './s3-server.ts'

let s3: S3Server
let catalog: RestCatalogServer

beforeAll(async () => {
  s3 = await startS3({ buckets: ['lake'] })
  catalog = await startRestCatalog({ warehouse: 's3://lake/warehouse', s3, vendCredentials: true })
})

afterAll(async () => {
  await catalog.close()
  await s3.close()
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
