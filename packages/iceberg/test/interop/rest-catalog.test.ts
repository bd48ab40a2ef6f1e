import { describe, expect, test } from 'vitest'
import { commitTable, RestCatalog } from '../../src/index.ts'
import { catalogConformance } from '../catalogs/conformance.ts'
import { buildAppend, chainOf, newTable } from '../catalogs/tables.ts'
import { interopServer } from './server.ts'

const url = interopServer('FENCEPOST_TEST_REST', 'a REST catalog of others')
const open = (): Promise<RestCatalog> => RestCatalog.open({ name: 'rest', url: url ?? '' })

describe.skipIf(url === undefined)("Iceberg's own REST catalog", () => {
  catalogConformance('REST', async () => ({ catalog: await open(), refuses: [] }))

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
