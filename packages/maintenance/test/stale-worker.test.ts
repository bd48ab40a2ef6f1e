import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { Gate } from '../../engine/test/bed.ts'
import { openMaintenanceBed, type MaintenanceBed } from './maintenance-bed.ts'

// T4: a worker that falls silent right before its commit, and comes back when another has finished the job, commits
// nothing. The commit is stopped at the statement that looks at the fence: in the catalog's own transaction for the
// JDBC catalog beside the jobs, by itself for the file system.

let on: MaintenanceBed
beforeAll(async () => {
  on = await openMaintenanceBed()
})
beforeEach(() => on.bed.reset())
afterAll(() => on.close())

const fenceStatement = 'transaction.fence'
const sleeper = async () => {
  const gate = new Gate()
  return { gate, engine: await on.open({ workerId: `sleeper-${Math.random()}` }, { pausePoint: gate.pausePoint }) }
}

/** Stops at the nth look at the fence. */
async function atLook(gate: Gate, nth: number) {
  let stop = gate.stopAt(fenceStatement)
  for (let n = 1; n < nth; n += 1) {
    await stop.reached
    const next = gate.stopAt(fenceStatement)
    stop.go()
    stop = next
  }
  await stop.reached
  return stop
}

test.each([
  ['lake', 'db', 'jdbc'],
  ['files', 'files:db', 'files'],
] as const)('in the %s catalog a stale worker commits nothing', async (catalog, database, table) => {
  await on.smallFiles(catalog, 'db', table, 6)
  await on.refresh()
  const rows = await on.rows(catalog, 'db', table)
  const { json: job } = await on.http('POST', `/tables/${database}/${table}/maintenance`, {
    actions: ['rewrite_data_files'],
  })
  const { gate, engine } = await sleeper()
  const [stale] = await engine.claim()
  if (stale === undefined) throw new Error('nothing to claim')
  // Beside the jobs there is one look before the commit's: for which Postgres it is.
  const atCommit = atLook(gate, catalog === 'lake' ? 2 : 1)
  const asleep = engine.run(stale)
  const stop = await atCommit

  await on.bed.advance(120_000)
  await on.runAll()
  expect((await on.http('GET', `/jobs/${job.job_id}`)).json).toMatchObject({ status: 'completed', attempts: 2 })

  stop.go()
  const woken = await asleep
  expect(woken).toMatchObject({ settled: false })
  const { metadata } = await (await on.catalogOf(catalog)).loadTable({ namespace: ['db'], name: table })
  const made = metadata.snapshots.filter(({ summary }) => summary?.['fencepost.job-id'] === job.job_id)
  expect(made).toHaveLength(1)
  expect(made[0]?.summary?.['fencepost.attempt-id']).not.toBe(stale.attemptId)
  expect(await on.rows(catalog, 'db', table)).toEqual(rows)
  expect((await on.facts(catalog, 'db', table)).dataFiles.files).toBe(1)
})

// Here nothing but the fence keeps it from committing: the table is as it was planned on.
test.each([
  ['lake', 'db', 'jdbc_idle'],
  ['files', 'files:db', 'files_idle'],
] as const)(
  'in the %s catalog a worker that lost its job to nobody yet commits nothing',
  async (catalog, database, table) => {
    await on.smallFiles(catalog, 'db', table, 6)
    await on.refresh()
    const { json: job } = await on.http('POST', `/tables/${database}/${table}/maintenance`, {
      actions: ['rewrite_data_files'],
    })
    const { gate, engine } = await sleeper()
    const [stale] = await engine.claim()
    if (stale === undefined) throw new Error('nothing to claim')
    const atCommit = atLook(gate, catalog === 'lake' ? 2 : 1)
    const asleep = engine.run(stale)
    const stop = await atCommit
    await on.bed.advance(120_000)
    await on.engine.sweep()
    stop.go()
    expect(await asleep).toMatchObject({ settled: false })
    expect((await on.facts(catalog, 'db', table)).dataFiles.files).toBe(6)
    await on.runAll()
    expect((await on.http('GET', `/jobs/${job.job_id}`)).json).toMatchObject({ status: 'completed', attempts: 2 })
    expect((await on.facts(catalog, 'db', table)).dataFiles.files).toBe(1)
  },
)

test('an attempt after a crash begins at the first action that has no success', async () => {
  await on.smallFiles('lake', 'db', 'crashed', 6)
  await on.refresh()
  const { json: job } = await on.http('POST', '/tables/db/crashed/maintenance', {
    actions: ['rewrite_data_files', 'rewrite_manifests'],
  })
  const [first] = await on.engine.claim()
  await first?.recordStep({ step: 'rewrite_data_files', success: true, message: 'Compacted elsewhere', result: {} })
  await on.bed.advance(120_000)
  await on.runAll()
  expect((await on.http('GET', `/jobs/${job.job_id}`)).json).toMatchObject({
    status: 'completed',
    attempts: 2,
    results: [
      { action: 'rewrite_data_files', message: 'Compacted elsewhere' },
      { action: 'rewrite_manifests', success: true, message: 'Rewrote 6 manifests into 1' },
    ],
  })
  expect((await on.facts('lake', 'db', 'crashed')).dataFiles.files).toBe(6)
})

test('a job ends at the first action that fails, and names it', async () => {
  await on.smallFiles('lake', 'db', 'failing', 6)
  await on.refresh()
  const { json: job } = await on.http('POST', '/tables/db/failing/maintenance', {
    actions: ['rewrite_manifests', 'rewrite_data_files', 'expire_snapshots'],
    options: { rewrite_manifests: { spec_id: 99 } },
  })
  await on.runAll()
  const { json: failed } = await on.http('GET', `/jobs/${job.job_id}`)
  expect(failed).toMatchObject({
    status: 'failed',
    error: expect.stringMatching(/^rewrite_manifests failed: /),
    results: [
      { action: 'rewrite_data_files', success: true },
      { action: 'rewrite_manifests', success: false, error: expect.stringContaining('99') },
    ],
  })
})
