import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { commitTable, RestCatalog } from '../../src/index.ts'
import { catalogConformance } from '../catalogs/conformance.ts'
import { buildAppend, chainOf, newTable } from '../catalogs/tables.ts'
import { startRestCatalog, type RestCatalogServer } from './rest-catalog-server.ts'
import { s3Address, startS3, type S3Server } from './s3-server.ts'
import { closedAfterAll } from './server-process.ts'

const opened = closedAfterAll()
let s3: S3Server
let onDisk: RestCatalogServer
let onS3: RestCatalogServer
beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-rest-'))
  opened({ close: () => rm(folder, { recursive: true, force: true }) })
  s3 = opened(await startS3({ buckets: ['lake'] }))
  const properties = { 'jdbc.strict-mode': 'true' }
  onDisk = opened(await startRestCatalog({ warehouse: `file://${folder}`, properties }))
  onS3 = opened(await startRestCatalog({ warehouse: 's3://lake/warehouse', s3, vendCredentials: true, properties }))
})

const open = (): Promise<RestCatalog> => RestCatalog.open({ name: 'rest', url: onDisk.uri })

// Its web server takes an encoded percent sign for an attack.
catalogConformance("Iceberg's REST catalog on disk", async () => ({ catalog: await open(), refuses: ['percent'] }))
catalogConformance("Iceberg's REST catalog on S3, with the credentials it vends,", async () => ({
  catalog: await RestCatalog.open({
    name: 'rest',
    url: onS3.uri,
    properties: s3Address(s3),
  }),
  refuses: ['percent'],
}))

describe("Iceberg's REST catalog", () => {
  test('says what it can do and how it separates levels', async () => {
    const { config } = await open()
    expect(config.supports('POST /v1/{prefix}/tables/rename')).toBe(true)
    expect(config.supports('POST /v1/{prefix}/nothing')).toBe(false)
  })

  test('snapshots are removed, many at once', async () => {
    const catalog = await open()
    const identifier = { namespace: [`n${Date.now()}`], name: 't' }
    await catalog.createNamespace(identifier.namespace)
    await catalog.createTable(identifier, newTable)
    for (let n = 0; n < 4; n++) await commitTable(catalog, identifier, (table) => buildAppend(table))
    const table = await catalog.loadTable(identifier)
    const [head, ...old] = chainOf(table)
    const requirements = [{ type: 'assert-ref-snapshot-id', ref: 'main', snapshotId: head ?? null }] as const
    const updates = [{ action: 'remove-snapshots', snapshotIds: old }] as const
    expect((await catalog.commit(table, { requirements, updates })).outcome).toBe('applied')
    expect((await catalog.loadTable(identifier)).metadata.snapshots.map((s) => s.snapshotId)).toEqual([head])
  })
})
