import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Catalogs, refreshInventory } from '../src/index.ts'
import { openMaintenanceBed, type MaintenanceBed } from './maintenance-bed.ts'

let on: MaintenanceBed
beforeAll(async () => {
  on = await openMaintenanceBed()
  await on.smallFiles('lake', 'analytics', 'page_views', 1)
  await on.smallFiles('lake', 'analytics', 'clicks', 1)
  await on.smallFiles('lake', 'analytics.raw', 'clicks', 1)
  await on.smallFiles('files', 'sales', 'orders', 1)
  await on.refresh()
})
afterAll(() => on.close())

const logger = { info() {}, warn() {}, error() {} }
const names = (tables: { database: string; table_name: string }[]) =>
  tables.map((one) => `${one.database}.${one.table_name}`)
const listed = async (query = '') => names((await on.http('GET', `/tables${query}`)).json)

test('the tables of all catalogs are listed by address, filtered and paged', async () => {
  const all = ['files:sales.orders', 'analytics.clicks', 'analytics.page_views', 'analytics.raw.clicks']
  expect(await listed()).toEqual(all)
  expect(await listed('?database=analytics')).toEqual(['analytics.clicks', 'analytics.page_views'])
  expect(await listed('?database=analytics.raw')).toEqual(['analytics.raw.clicks'])
  expect(await listed('?database=files:sales')).toEqual(['files:sales.orders'])
  expect(await listed('?catalog=files')).toEqual(['files:sales.orders'])
  expect(await listed('?search=CLICK')).toEqual(['analytics.clicks', 'analytics.raw.clicks'])
  const paged: string[] = []
  let after: string | null = ''
  do {
    const page = await on.http(
      'GET',
      `/tables?limit=3${after === '' ? '' : `&after=${encodeURIComponent(after ?? '')}`}`,
    )
    paged.push(...names(page.json))
    after = page.headers.get('next-after')
  } while (after !== null)
  expect(paged).toEqual(all)
})

test('a table is listed with its last job and with the job that holds its lock', async () => {
  const { json: job } = await on.http('POST', '/tables/analytics/clicks/maintenance', {
    actions: ['rewrite_manifests'],
  })
  const of = async () => (await on.http('GET', '/tables?database=analytics&search=clicks')).json[0]
  expect(await of()).toMatchObject({ locked_by: job.job_id, last_job: { job_id: job.job_id, status: 'pending' } })
  await on.runAll()
  expect(await of()).toMatchObject({ locked_by: null, last_job: { job_id: job.job_id, status: 'completed' } })
})

test('a refresh swaps the list: new tables appear, dropped ones go', async () => {
  const catalog = await on.catalogOf('lake')
  await on.smallFiles('lake', 'swapped', 'first', 1)
  await on.refresh()
  expect(await listed('?database=swapped')).toEqual(['swapped.first'])
  await catalog.dropTable({ namespace: ['swapped'], name: 'first' })
  await on.smallFiles('lake', 'swapped', 'second', 1)
  await on.refresh()
  expect(await listed('?database=swapped')).toEqual(['swapped.second'])
})

test('a catalog that is down keeps its last list, marked stale, and the others are refreshed', async () => {
  const away = {
    type: 'jdbc' as const,
    database: 'postgres://nobody@127.0.0.1:1/none',
    warehouse: 'file:///x',
    properties: {},
  }
  const broken = new Catalogs({ default: 'lake', catalogs: { lake: away } })
  const before = await listed('?catalog=lake')
  const refreshed = await refreshInventory(on.engine.database, broken, {
    acceptsEmpty: false,
    unlessWithinMs: 0,
    logger,
  })
  expect(refreshed).toMatchObject([{ catalog: 'lake', refreshed: false, why: 'failed' }])
  expect(await listed('?catalog=lake')).toEqual(before)
  const tables = (await on.http('GET', '/tables')).json as { catalog: string; stale: boolean }[]
  expect(tables.every(({ catalog, stale }) => stale === (catalog === 'lake'))).toBe(true)
  expect((await on.http('GET', '/catalogs')).json).toMatchObject([
    { catalog: 'lake', type: 'jdbc', is_default: true, error: expect.any(String) },
    { catalog: 'files', type: 'files', is_default: false, error: null },
  ])
  expect((await on.http('GET', '/readyz')).status).toBe(200)
  await on.refresh()
  expect((await on.http('GET', '/tables?catalog=lake')).json[0]).toMatchObject({ stale: false })
})

test('a catalog that lists nothing any more is believed only when somebody asks for a refresh', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-not-mounted-'))
  const empty = { type: 'files' as const, warehouse: `file://${folder}`, properties: {} }
  const unmounted = new Catalogs({ default: 'files', catalogs: { files: empty } })
  await on.smallFiles('files', 'kept', 'table', 1)
  await on.refresh()
  const before = await listed('?catalog=files')
  const refresh = (acceptsEmpty: boolean) =>
    refreshInventory(on.engine.database, unmounted, { acceptsEmpty, unlessWithinMs: 0, logger })
  expect(await refresh(false)).toMatchObject([{ refreshed: false, why: 'failed' }])
  expect(await listed('?catalog=files')).toEqual(before)
  expect(await refresh(true)).toMatchObject([{ refreshed: true, tables: 0 }])
  expect(await listed('?catalog=files')).toEqual([])
  await on.refresh()
  expect(await listed('?catalog=files')).toEqual(before)
  await rm(folder, { recursive: true })
})

test('one process at a time lists a catalog, and not again while its list is fresh', async () => {
  const refresh = (unlessWithinMs: number) =>
    refreshInventory(on.engine.database, on.catalogs, { acceptsEmpty: false, unlessWithinMs, logger })
  const both = await Promise.all([refresh(0), refresh(0)])
  const ofLake = both.map((all) => all.find(({ catalog }) => catalog === 'lake')?.refreshed)
  expect(ofLake).toContain(true)
  expect(await refresh(60_000)).toMatchObject([
    { refreshed: false, why: 'not_due' },
    { refreshed: false, why: 'not_due' },
  ])
  await on.bed.advance(61_000)
  expect(await refresh(60_000)).toMatchObject([{ refreshed: true }, { refreshed: true }])
})

test('the health of a table is looked at, kept, and shown in the list', async () => {
  await on.smallFiles('lake', 'healthy', 'many_files', 12)
  await on.refresh()
  const of = async () => (await on.http('GET', '/tables?database=healthy')).json[0]
  expect(await of()).toMatchObject({ health: null, health_at: null })
  const live = await on.http('GET', '/tables/healthy/many_files/health')
  expect(live).toMatchObject({ status: 200, json: { table_name: 'many_files', score: expect.any(Number) } })
  expect(live.json.recommended_actions).toContainEqual(expect.objectContaining({ action: 'rewrite_data_files' }))
  expect(await of()).toMatchObject({ health: { score: live.json.score }, health_at: live.json.looked_at })

  await on.http('POST', '/tables/healthy/many_files/maintenance', {
    actions: ['rewrite_data_files', 'rewrite_manifests'],
  })
  await on.runAll()
  expect((await on.http('GET', '/tables/healthy/many_files/health/cached')).json).toEqual(live.json)
  const after = (await on.http('GET', '/tables/healthy/many_files/health')).json
  expect(after.score).toBeGreaterThan(live.json.score)
  expect((await on.http('GET', '/tables/healthy/nowhere/health')).status).toBe(404)
})
