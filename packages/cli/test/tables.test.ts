import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createClient } from '@fencepost/client'
import { createTable, JdbcCatalog, type Catalog } from '@fencepost/iceberg'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { processesBelow } from './processes-below.ts'
import { cliBed, type Running } from './cli-bed.ts'

// Maintenance by processes, as people run it: a server, workers that are killed, and commands.

const bed = cliBed()
let catalogs: string
let catalog: Catalog
let database: pg.Pool
let url: string

beforeAll(async () => {
  const warehouse = join(bed.directory, 'warehouse')
  mkdirSync(warehouse)
  catalogs = bed.write(
    'catalogs.json',
    JSON.stringify({ catalogs: { lake: { type: 'jdbc', database: '${LAKE}', warehouse: './warehouse' } } }),
  )
  database = new pg.Pool({ connectionString: bed.database })
  database.on('error', () => {}) // a connection may still be closing when the database is dropped
  catalog = await JdbcCatalog.open({ name: 'lake', database, warehouse: pathToFileURL(warehouse).href })
  await catalog.createNamespace(['sales'])
  for (const name of ['orders', 'killed', 'stopped', 'asleep']) {
    const table = await createTable(
      catalog,
      { namespace: ['sales'], name },
      {
        schema: { fields: [{ id: 1, name: 'id', required: true, type: { type: 'long' } }] },
        properties: { 'commit.manifest-merge.enabled': 'false' },
      },
    )
    for (let nth = 0; nth < 6; nth += 1) await table.append([{ id: BigInt(nth) }])
    await table.close()
  }
  url = (await start('serve', '--port', '0').line<{ url: string }>()).url
}, 120_000)
afterAll(() => database.end())

const env = () => ({ LAKE: bed.database })
const start = (command: string, ...args: string[]): Running =>
  bed.start([command, '--database', bed.database, '--catalogs', catalogs, '--json', ...args], { env: env() })
const run = (...args: string[]) => bed.run([...args, '--json', '--url', url])
const fileCount = async (name: string) => {
  const { metadata } = await catalog.loadTable({ namespace: ['sales'], name })
  const head = metadata.snapshots.find(({ snapshotId }) => snapshotId === metadata.currentSnapshotId)
  return Number(head?.summary?.['total-data-files'])
}

test('tables are listed, planned and maintained by commands', async () => {
  const checked = await bed.run(['catalogs', 'check', '--catalogs', catalogs, '--json'], { env: env() })
  expect(checked).toMatchObject({ code: 0, lines: [[{ catalog: 'lake', ok: true, namespaces: 1 }]] })
  expect(await bed.run(['catalogs', 'check', '--catalogs', catalogs])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('LAKE'),
  })
  const client = createClient({ url })
  await expect
    .poll(async () => (await run('catalogs', 'list')).lines)
    .toMatchObject([[{ catalog: 'lake', error: null }]])
  await expect
    .poll(async () => (await run('tables', 'list', '--search', 'orders')).lines)
    .toMatchObject([[{ database: 'sales', table_name: 'orders' }]])
  const planned = await run('tables', 'maintain', 'sales.orders', '--dry-run', '--actions', 'rewrite_data_files')
  expect(planned).toMatchObject({
    code: 0,
    lines: [{ dry_run: true, plan: [{ action: 'rewrite_data_files', files: 6 }] }],
  })
  expect((await run('tables', 'health', 'sales.orders')).lines).toMatchObject([{ table_name: 'orders' }])
  expect((await run('tables', 'plan', 'sales.nowhere')).code).toBe(4)

  const worker = start('worker')
  await worker.line()
  const maintained = await run('tables', 'maintain', 'sales.orders', '--wait')
  expect(maintained.code).toBe(0)
  expect(maintained.lines.at(-1)).toMatchObject({ status: 'completed', actions: expect.any(Array) })
  expect(await fileCount('orders')).toBe(1)
  expect(await client.listJobs()).toHaveLength(1)
  worker.kill('SIGTERM')
  await worker.ended
}, 120_000)

test('a worker that is killed in the middle of an action leaves a job that another finishes', async () => {
  const client = createClient({ url })
  const [job] = (await run('tables', 'maintain', 'sales.killed', '--actions', 'rewrite_data_files,rewrite_manifests'))
    .lines as { job_id: string }[]
  const jobId = job?.job_id ?? ''
  const first = start('worker')
  for await (const { event } of client.events(jobId)) if (event === 'maintenance.planned') break
  first.kill('SIGKILL')
  await first.ended
  await database.query(`update fencepost.test_clock set ahead = ahead + interval '2 minutes'`)
  const second = start('worker')
  const ended = await client.waitFor(jobId, { timeoutMs: 100_000 })
  expect(ended).toMatchObject({ status: 'completed' })
  expect(await fileCount('killed')).toBe(1)
  second.kill('SIGTERM')
  await second.ended
}, 120_000)

test('a worker that wakes up when another has finished its job commits nothing', async () => {
  const client = createClient({ url })
  const [job] = (await run('tables', 'maintain', 'sales.asleep', '--actions', 'rewrite_data_files')).lines as {
    job_id: string
  }[]
  const jobId = job?.job_id ?? ''
  const asleep = start('worker')
  for await (const { event } of client.events(jobId)) if (event === 'maintenance.planned') break
  const { attempt_id: stale } = await client.getJob(jobId)
  const handlers = processesBelow(asleep.pid)
  for (const pid of [asleep.pid, ...handlers]) process.kill(pid, 'SIGSTOP')
  await database.query(`update fencepost.test_clock set ahead = ahead + interval '2 minutes'`)
  const other = start('worker')
  const ended = await client.waitFor(jobId, { timeoutMs: 100_000 })
  for (const pid of [...handlers, asleep.pid]) process.kill(pid, 'SIGCONT')
  asleep.kill('SIGTERM')
  await asleep.ended
  const { metadata } = await catalog.loadTable({ namespace: ['sales'], name: 'asleep' })
  const made = metadata.snapshots.filter(({ summary }) => summary?.['fencepost.job-id'] === jobId)
  expect(ended.status).toBe('completed')
  // If it fell asleep after its commit, the other found nothing left to do.
  expect(made).toHaveLength(1)
  if (ended.attempts > 1 && made[0]?.summary?.['fencepost.attempt-id'] !== stale)
    expect(ended.attempt_id).not.toBe(stale)
  expect(await fileCount('asleep')).toBe(1)
  other.kill('SIGTERM')
  await other.ended
}, 120_000)

test('a worker that is told to stop fails its job with the reason, and the table is free', async () => {
  const client = createClient({ url })
  const submitted = await run('tables', 'maintain', 'sales.stopped', '--actions', 'rewrite_data_files')
  const [{ job_id: jobId } = { job_id: '' }] = submitted.lines as { job_id: string }[]
  const worker = start('worker')
  for await (const { event } of client.events(jobId)) if (event === 'job.started') break
  worker.kill('SIGTERM')
  await worker.ended
  const ended = await client.waitFor(jobId, { timeoutMs: 60_000 })
  if (ended.status === 'failed') expect(ended.error).toBe('Worker received SIGTERM')
  else expect(ended.status).toBe('completed')
  const again = await run('tables', 'maintain', 'sales.stopped', '--actions', 'rewrite_data_files')
  expect(again.code).toBe(0)
}, 120_000)
