import { afterAll, beforeAll, expect, test } from 'vitest'
import { openMaintenanceBed, type MaintenanceBed } from './maintenance-bed.ts'

let on: MaintenanceBed
beforeAll(async () => {
  on = await openMaintenanceBed()
  await on.smallFiles('lake', 'analytics', 'page_views', 6)
  await on.smallFiles('files', 'sales.eu', 'orders', 6)
  await on.refresh()
})
afterAll(() => on.close())

const path = '/tables/analytics/page_views/maintenance'

test('maintenance is accepted, run action by action, and shown with the result of each', async () => {
  const before = await on.rows('lake', 'analytics', 'page_views')
  const body = { actions: ['expire_snapshots', 'rewrite_data_files', 'rewrite_data_files'] }
  const accepted = await on.http('POST', path, body)
  expect(accepted).toMatchObject({
    status: 202,
    json: {
      database: 'analytics',
      table_name: 'page_views',
      actions: ['rewrite_data_files', 'expire_snapshots'],
      dry_run: false,
      status: 'pending',
      started_at: null,
      completed_at: null,
      results: null,
      error: null,
      operation: 'table_maintenance',
    },
  })
  const { job_id: jobId } = accepted.json
  expect(accepted.headers.get('location')).toBe(`/jobs/${jobId}`)
  expect(accepted.headers.get('retry-after')).toBe('30')

  const second = await on.http('POST', path, body)
  expect(second).toMatchObject({ status: 409, json: { error: { code: 'lock_held', details: { job_id: jobId } } } })

  await on.runAll()
  const { json: job } = await on.http('GET', `/jobs/${jobId}`)
  expect(job).toMatchObject({
    status: 'completed',
    error: null,
    results: [
      { action: 'rewrite_data_files', success: true, message: 'Compacted 6 files into 1', error: null },
      { action: 'expire_snapshots', success: true },
    ],
  })
  expect(job.progress.current).toBe(job.progress.total)
  expect((await on.facts('lake', 'analytics', 'page_views')).dataFiles.files).toBe(1)
  expect(await on.rows('lake', 'analytics', 'page_views')).toEqual(before)

  const events = ((await on.http('GET', `/jobs/${jobId}/events`)).json as { event: string }[]).map(({ event }) => event)
  for (const event of ['planned', 'group_done', 'proof_checked', 'committed']) {
    expect(events).toContain(`maintenance.${event}`)
  }
  const catalog = await on.catalogOf('lake')
  const { metadata } = await catalog.loadTable({ namespace: ['analytics'], name: 'page_views' })
  const [made] = metadata.snapshots.filter(({ summary }) => summary?.['fencepost.job-id'] === jobId)
  expect(made?.summary?.['fencepost.attempt-id']).toMatch(/^[0-9a-f-]{32,36}$/)
  expect((await on.http('GET', '/jobs?table=analytics.page_views')).json).toMatchObject([
    { job_id: jobId, table_name: 'page_views', database: 'analytics' },
  ])
  expect((await on.http('GET', '/jobs?table=analytics.other')).json).toEqual([])
})

test('a table of another catalog, in a nested namespace, is addressed with the catalog in front', async () => {
  const accepted = await on.http('POST', '/tables/files:sales.eu/orders/maintenance', {
    actions: ['rewrite_data_files'],
  })
  expect(accepted).toMatchObject({
    status: 202,
    json: {
      catalog: 'files',
      database: 'files:sales.eu',
      table_name: 'orders',
      lock_key: 'table:files/sales.eu/orders',
    },
  })
  await on.runAll()
  expect((await on.http('GET', `/jobs/${accepted.json.job_id}`)).json).toMatchObject({ status: 'completed' })
  expect((await on.facts('files', 'sales.eu', 'orders')).dataFiles.files).toBe(1)
  const listed = await on.http('GET', '/jobs?table=files:sales.eu.orders')
  expect(listed.json).toMatchObject([{ job_id: accepted.json.job_id }])
})

test('a dry run is answered as completed with a plan for each action, and changes nothing', async () => {
  await on.smallFiles('lake', 'analytics', 'clicks', 6)
  await on.refresh()
  const planned = await on.http('POST', '/tables/analytics/clicks/maintenance', {
    actions: ['rewrite_manifests', 'rewrite_data_files'],
    dry_run: true,
  })
  expect(planned).toMatchObject({
    status: 202,
    json: {
      dry_run: true,
      status: 'completed',
      plan: [
        { action: 'rewrite_data_files', needed: true, files: 6 },
        { action: 'rewrite_manifests', needed: true, files: 6 },
      ],
    },
  })
  expect(planned.headers.get('retry-after')).toBeNull()
  expect((await on.facts('lake', 'analytics', 'clicks')).dataFiles.files).toBe(6)
  expect((await on.http('GET', '/jobs?table=analytics.clicks')).json).toEqual([])
  const all = await on.http('GET', '/tables/analytics/clicks/plan')
  expect(all.json.plan).toHaveLength(5)
})

test.each([
  ['no action', {}, 400],
  ['an empty list of actions', { actions: [] }, 400],
  ['an unknown action', { actions: ['vacuum'] }, 400],
  ['a field that is not known', { actions: ['rewrite_manifests'], force: true }, 400],
  [
    'an option that the action does not have',
    { actions: ['expire_snapshots'], options: { expire_snapshots: { keep: 1 } } },
    400,
  ],
  ['an option out of range', { actions: ['expire_snapshots'], options: { expire_snapshots: { retain_last: 0 } } }, 400],
  [
    'an option of Spark out of range',
    { actions: ['rewrite_data_files'], options: { rewrite_data_files: { 'min-input-files': 0 } } },
    400,
  ],
  [
    'options of an action that was not asked for',
    { actions: ['rewrite_manifests'], options: { expire_snapshots: {} } },
    400,
  ],
])('%s is refused', async (_, body, status) => {
  expect(await on.http('POST', path, body)).toMatchObject({ status, json: { error: { code: 'request_invalid' } } })
})

test('a table that is not in the inventory is 404, and a name that cannot be is 422', async () => {
  const body = { actions: ['rewrite_manifests'] }
  const asked = async (where: string) => {
    const { status, json } = await on.http('POST', `/tables/${where}/maintenance`, body)
    return [status, json.error.code]
  }
  expect(await asked('analytics/nowhere')).toEqual([404, 'table_not_found'])
  expect(await asked('unknown:analytics/page_views')).toEqual([404, 'table_not_found'])
  expect(await asked('analytics/a%22b')).toEqual([422, 'table_name_invalid'])
  expect(await asked('a::b/c')).toEqual([422, 'table_name_invalid'])
  expect(await asked('a..b/c')).toEqual([422, 'table_name_invalid'])
})

test('nothing is accepted while drain is on', async () => {
  await on.engine.setDrain('submissions')
  try {
    const refused = await on.http('POST', path, { actions: ['rewrite_manifests'] })
    expect(refused).toMatchObject({ status: 503, json: { error: { code: 'drained' } } })
    expect(refused.headers.get('retry-after')).not.toBeNull()
  } finally {
    await on.engine.setDrain('off')
  }
})

test('a cancelled job frees its table, and the table is as it was', async () => {
  await on.smallFiles('lake', 'analytics', 'cancelled', 6)
  await on.refresh()
  const where = '/tables/analytics/cancelled/maintenance'
  const { json: job } = await on.http('POST', where, { actions: ['rewrite_data_files'] })
  const [attempt] = await on.engine.claim()
  if (attempt === undefined) throw new Error('nothing to claim')
  expect((await on.http('POST', `/jobs/${job.job_id}/cancel`)).json).toMatchObject({ status: 'cancelled' })
  await on.engine.run(attempt)
  expect((await on.facts('lake', 'analytics', 'cancelled')).dataFiles.files).toBe(6)
  const again = await on.http('POST', where, { actions: ['rewrite_data_files'] })
  expect(again.status).toBe(202)
  await on.runAll()
  expect((await on.facts('lake', 'analytics', 'cancelled')).dataFiles.files).toBe(1)
})
