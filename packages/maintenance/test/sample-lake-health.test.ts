import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  executeExpireSnapshots,
  executeRemoveOrphanFiles,
  executeRewriteDataFiles,
  executeRewriteManifests,
  executeRewritePositionDeletes,
  HadoopCatalog,
  planExpireSnapshots,
  planRemoveOrphanFiles,
  planRewriteDataFiles,
  planRewriteManifests,
  planRewritePositionDeletes,
  type LoadedTable,
} from '@fencepost/iceberg'
import { tableHealth, type RecommendedAction, type TableHealth } from '../src/health/index.ts'
import { makeSampleLake } from '../src/sample-lake/index.ts'

let folder = ''
let catalog: HadoopCatalog

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fencepost-lake-health-'))
  catalog = new HadoopCatalog({ name: 'lake', warehouse: folder })
  await makeSampleLake(catalog, folder, { scale: 0.05 })
}, 120_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

const load = (name: string): Promise<LoadedTable> => {
  const [namespace = '', table = ''] = name.split('.')
  return catalog.loadTable({ namespace: [namespace], name: table })
}
const healthOf = async (name: string): Promise<TableHealth> =>
  await tableHealth(catalog, await load(name), { orphans: true })
const actionsOf = ({ recommendedActions }: TableHealth): string[] => recommendedActions.map(({ action }) => action)
const codesOf = ({ issues }: TableHealth): string[] => issues.map(({ code }) => code)

test('page views: small files and old snapshots', async () => {
  const health = await healthOf('analytics.page_views')
  expect(health.score).toBeLessThan(20)
  expect(health.losses[0]).toMatchObject({ code: 'small_files', action: 'rewrite_data_files' })
  expect(codesOf(health)).toEqual(expect.arrayContaining(['small_files', 'old_snapshots']))
  expect(actionsOf(health)).toEqual(expect.arrayContaining(['rewrite_data_files', 'expire_snapshots']))
})

test('orders: position deletes, which are merged without touching data', async () => {
  const health = await healthOf('sales.orders')
  expect(health.losses[0]).toMatchObject({ code: 'position_deletes' })
  expect(actionsOf(health)).toContain('rewrite_position_delete_files')
})

test('customers: equality deletes', async () => {
  const health = await healthOf('sales.customers')
  expect(codesOf(health)).toContain('equality_deletes')
  expect(actionsOf(health)).toContain('rewrite_data_files')
})

test('readings: deletion vectors', async () => {
  const health = await healthOf('iot.readings')
  expect(codesOf(health)).toContain('deletion_vectors')
  expect(actionsOf(health)).toContain('rewrite_data_files')
})

test('the audit log: manifests and orphans', async () => {
  const health = await healthOf('ops.audit_log')
  expect(codesOf(health)).toEqual(expect.arrayContaining(['manifests', 'orphan_files']))
  expect(actionsOf(health)).toEqual(['rewrite_manifests', 'remove_orphan_files'])
  expect(health.wastedBytes.orphans).toBeGreaterThan(0)
})

test('countries need nothing', async () => {
  expect(await healthOf('reference.countries')).toMatchObject({
    score: 100,
    band: 'good',
    losses: [],
    issues: [],
    recommendedActions: [],
    wastedBytes: { total: 0 },
  })
})

test('after the recommended actions nothing is recommended any more, and the score is what was foretold', async () => {
  for (const name of ['analytics.page_views', 'sales.orders', 'sales.customers', 'iot.readings', 'ops.audit_log']) {
    const before = await healthOf(name)
    for (const recommended of before.recommendedActions) await run(name, recommended)
    const after = await healthOf(name)
    expect({ name, actions: actionsOf(after) }).toEqual({ name, actions: [] })
    expect(after.score).toBeGreaterThanOrEqual(75)
    expect(before.scoreAfter - after.score).toBeLessThanOrEqual(5)
  }
}, 120_000)

async function run(name: string, { action, options }: RecommendedAction): Promise<void> {
  const table = await load(name)
  switch (action) {
    case 'rewrite_data_files':
      await executeRewriteDataFiles(table, await planRewriteDataFiles(table, { options }), { catalog })
      return
    case 'rewrite_position_delete_files':
      await executeRewritePositionDeletes(table, await planRewritePositionDeletes(table), { catalog })
      return
    case 'rewrite_manifests':
      await executeRewriteManifests(table, await planRewriteManifests(table), { catalog })
      return
    case 'expire_snapshots':
      await executeExpireSnapshots(table, await planExpireSnapshots(table), { catalog })
      return
    case 'remove_orphan_files':
      await executeRemoveOrphanFiles(table, await planRemoveOrphanFiles(catalog, table), { catalog })
  }
}
