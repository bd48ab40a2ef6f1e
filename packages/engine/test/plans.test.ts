import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { planOnce } from '../src/database/prepared.ts'
import { relationsOf } from '../src/database/relations.ts'
import type { Sql } from '../src/database/sql.ts'
import { claimStatement } from '../src/lifecycle/claim.ts'
import { claimPlainStatement } from '../src/lifecycle/claim-plain.ts'
import { completeStatement } from '../src/lifecycle/complete.ts'
import { renewStatement } from '../src/lifecycle/renew.ts'
import { idsStatement, scanRows } from '../src/read/filter.ts'
import { listStatement, type ListOptions } from '../src/read/list.ts'
import { surveyStatement } from '../src/worker/survey.ts'
import { openBed, type Bed } from './bed.ts'

// What Postgres does with the hot statements, with very many jobs of each kind in the database: 100,000 when tried by
// hand, a million in CI, where the minute it takes does no harm. FENCEPOST_PLAN_ROWS sets the number;
// FENCEPOST_SHOW_PLANS prints the plans.
const rows = Number(process.env['FENCEPOST_PLAN_ROWS'] ?? (process.env['CI'] ? 1_000_000 : 100_000))
const db = { t: relationsOf('fencepost') }

interface Node {
  'Node Type': string
  'Index Name'?: string
  'Relation Name'?: string
  'Subplan Name'?: string
  'Actual Loops'?: number
  'Actual Rows'?: number
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  Plans?: Node[]
}

let bed: Bed
let client: pg.Client

let whenNew: Record<string, string[]>
let whenEmpty: Record<string, string[]>

beforeAll(async () => {
  bed = await openBed()
  client = new pg.Client({ connectionString: bed.url })
  await client.connect()
  whenNew = await preparedPlans()
  await client.query('vacuum analyze fencepost.live_jobs, fencepost.finished_jobs')
  whenEmpty = await preparedPlans()
  await fill()
}, 180_000)

afterAll(async () => {
  await client.end()
  await bed.close()
})

async function fill(): Promise<void> {
  await client.query(`set search_path to fencepost; set maintenance_work_mem = '256MB'`)
  // Loaded without indexes and indexed afterwards, in a third of the time.
  const { rows: indexes } = await client.query<{ indexname: string; indexdef: string }>(
    `select indexname, indexdef from pg_indexes
      where schemaname = 'fencepost' and tablename in ('live_jobs', 'finished_jobs') and indexname !~ '_pkey$'`,
  )
  for (const { indexname } of indexes) await client.query(`drop index ${indexname}`)
  await client.query('alter table live_jobs drop constraint live_jobs_pkey')
  await client.query('alter table finished_jobs drop constraint finished_jobs_pkey')
  const jobs = (count: number, queue: string, priority: string, runAfter: string, operation = 'work', slot = 'null') =>
    client.query(`
      insert into live_jobs (job_id, operation, queue, payload, priority, run_after, max_attempts, submitted_at, slot_key)
      select new_job_id(${runAfter}, nth), '${operation}', ${queue}, '{}', ${priority}, ${runAfter}, 3, now(), ${slot}
        from generate_series(1, ${count}) nth`)
  await jobs(rows, `'default'`, 'nth % 3', `now() - interval '1 hour'`)
  await jobs(rows, `case nth % 2 when 0 then 'default' else 'later' end`, '0', `now() + interval '1 day'`)
  await jobs(1, `'later'`, '9', `now() - interval '1 hour'`)
  await jobs(rows / 10, `'slot'`, '0', `now() - interval '1 hour'`, 'work', `'busy'`)
  await jobs(1, `'slot'`, '0', `now() - interval '1 minute'`, 'work', `'free'`)
  await jobs(1, `'slot'`, '0', `now() - interval '1 minute'`)
  await client.query(`insert into slots (slot_key, job_id, held_until)
                      values ('busy', '${'0'.repeat(32)}', now() + interval '1 hour')`)
  await jobs(rows / 10, `'strange'`, '0', `now() - interval '1 hour'`, 'unknown')
  await jobs(1, `'strange'`, '0', `now() - interval '1 minute'`)
  await client.query(`
    insert into finished_jobs (job_id, operation, queue, payload, status, priority, run_after, attempts, max_attempts,
                               submitted_at, completed_at, submitted_event_id)
    select new_job_id(now() - interval '1 day', nth), 'work', 'default', '{}', 'completed', 0, now(), 1, 3, now(),
           now(), nth
      from generate_series(1, ${rows}) nth`)
  await client.query('alter table live_jobs add constraint live_jobs_pkey primary key (job_id)')
  await client.query('alter table finished_jobs add constraint finished_jobs_pkey primary key (job_id)')
  for (const { indexdef } of indexes) await client.query(indexdef)
  await client.query('vacuum analyze live_jobs, finished_jobs')
}

const someIds = Array.from({ length: 500 }, (_, nth) => nth.toString(16).padStart(32, '0'))
const some = someIds.map((id) => ({ jobId: id, attemptId: id, leaseMs: 1000, hasKeys: false }))
const keyed = some.map((one) => ({ ...one, hasKeys: true, result: '1' }))
const claiming = { queue: 'default', leases: { work: 30_000 }, limit: 100, workerId: 'w', durable: false }
const place = { priority: 0, runAfter: 1767225600, jobId: '0'.repeat(32) }

/** Which indexes, or other scans, the statements that are run all day use when they are prepared on a connection of ours, now. */
async function preparedPlans(): Promise<Record<string, string[]>> {
  const session = new pg.Client({ connectionString: bed.url })
  await session.connect()
  await planOnce(session, 120_000)
  const statements = {
    claim: claimStatement(db, claiming),
    claimPlain: claimPlainStatement(db, claiming),
    claimOn: claimPlainStatement(db, claiming, place),
    claimDurably: claimPlainStatement(db, { ...claiming, durable: true }),
    complete: completeStatement(db, some, 'count'),
    completeKeyed: completeStatement(db, keyed, 'count'),
    completeOne: completeStatement(db, some.slice(0, 1), 'rows'),
    claimSeveral: claimPlainStatement(db, { ...claiming, leases: { work: 30_000, other: 30_000 } }),
    renew: renewStatement(db, some),
    survey: surveyStatement(db, ['default'], ['work']),
  }
  const plans: Record<string, string[]> = {}
  for (const [name, { text }] of Object.entries(statements)) {
    const { rows: found } = await session.query(`explain (generic_plan, format json) ${text}`)
    const [{ Plan: root }] = (found as [{ 'QUERY PLAN': [{ Plan: Node }] }])[0]['QUERY PLAN']
    plans[name] = [...indexesRead(root), ...reads(root, 'live_jobs').filter((read) => !/Index|Bitmap/.test(read))]
  }
  await session.end()
  return plans
}

async function plan(statement: Pick<Sql, 'text' | 'values'>): Promise<Node> {
  await client.query('begin')
  const explain = async (options: string) =>
    client.query({ text: `explain (${options}) ${statement.text}`, values: [...statement.values] })
  const { rows: json } = await explain('analyze, buffers, format json')
  if (process.env['FENCEPOST_SHOW_PLANS']) {
    await client.query('rollback; begin')
    const { rows: lines } = await explain('analyze, costs off, timing off')
    console.info(lines.map((line: Record<string, string>) => line['QUERY PLAN']).join('\n'))
  }
  await client.query('rollback')
  return (json as [{ 'QUERY PLAN': [{ Plan: Node }] }])[0]['QUERY PLAN'][0].Plan
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]
const blocks = (node: Node) => (node['Shared Hit Blocks'] ?? 0) + (node['Shared Read Blocks'] ?? 0)
const reads = (node: Node, relation: string) =>
  nodesOf(node)
    .filter(
      (one) => one['Relation Name'] === relation && one['Node Type'].endsWith('Scan') && one['Actual Loops'] !== 0,
    )
    .map((one) => `${one['Node Type']} ${one['Index Name'] ?? ''}`.trim())

/** The indexes over which live_jobs is read, whatever the kind of scan. */
const indexesRead = (node: Node) =>
  nodesOf(node)
    .filter((one) => one['Actual Loops'] !== 0)
    .flatMap((one) => one['Index Name'] ?? [])
    .filter((index) => index.startsWith('live_jobs'))
    .sort()

const given = (values: readonly unknown[]) =>
  values.map((value) => client.escapeLiteral(Array.isArray(value) ? `{${value.join(',')}}` : String(value))).join(', ')

describe(`with ${rows} pending, ${rows} future and ${rows} finished jobs`, () => {
  test('a claim reads its jobs from one index, in order, and no more of them than it was asked for', async () => {
    const options = { queue: 'default', leases: { work: 30_000 }, limit: 100, workerId: 'w' }
    const root = await plan(claimStatement(db, options))
    const due = nodesOf(root).find((node) => node['Subplan Name'] === 'CTE due')
    for (const node of nodesOf(root)) expect(node['Actual Rows'] ?? 0).toBeLessThanOrEqual(options.limit)
    expect(new Set(reads(root, 'live_jobs'))).toEqual(
      new Set([
        'Index Only Scan live_jobs_claim',
        'Index Only Scan live_jobs_claim_slotted',
        'Index Scan live_jobs_claim',
        'Index Scan live_jobs_claim_slotted',
        'Tid Scan',
      ]),
    )
    expect(reads(root, 'finished_jobs')).toEqual([])
    // Reading a hundred jobs out of two million touches a few pages of each, whatever else is in the table.
    expect(blocks(due as Node)).toBeLessThan(500)
  })

  test('plans that were made while there were no jobs are the ones that are made now', async () => {
    const now = await preparedPlans()
    expect(whenNew).toEqual(now)
    expect(whenEmpty).toEqual(now)
    expect(Object.values(now).flat()).not.toContain('Seq Scan')
  })

  test('half a million future jobs are not in the way of a due one with less priority', async () => {
    const options = { queue: 'later', leases: { work: 30_000 }, limit: 100, workerId: 'w' }
    const root = await plan(claimStatement(db, options))
    expect(root['Actual Rows']).toBe(1)
    expect(blocks(root)).toBeLessThan(100)
  })

  // What a claim reads in an empty queue is a handful of pages; a limit of 10 jobs adds some tens.
  test.each([
    ['very many jobs of one busy slot', 'slot', 2],
    ['very many jobs of operations that the worker does not have', 'strange', 1],
  ])('behind %s, a claim reads a few pages', async (_, queue, found) => {
    const options = { queue, leases: { work: 30_000 }, limit: 10, workerId: 'w', durable: false }
    const any = await plan(claimStatement(db, options))
    expect(any['Actual Rows']).toBe(found)
    expect(blocks(any)).toBeLessThan(150)
    const plain = await plan(claimPlainStatement(db, options))
    expect(plain['Actual Rows']).toBe(1)
    expect(blocks(plain)).toBeLessThan(40)
    for (const node of [...nodesOf(any), ...nodesOf(plain)]) expect(node['Actual Rows'] ?? 0).toBeLessThanOrEqual(10)
  })

  test('a survey of all queues reads a few pages', async () => {
    const root = await plan(surveyStatement(db, ['default', 'later', 'slot', 'strange', 'empty'], ['work']))
    expect(root['Actual Rows']).toBe(6) // two of them say whether a lease has passed, and a schedule is due
    expect(blocks(root)).toBeLessThan(200)
    expect(reads(root, 'live_jobs').every((one) => /live_jobs_(claim|lease|start_by)/.test(one))).toBe(true)
  })

  test('settling finds its jobs by their ids alone', async () => {
    const { rows: some } = await client.query<{ job_id: string }>(
      `select job_id from live_jobs where status = 'pending' order by job_id limit 500`,
    )
    const completions = some.map(({ job_id: jobId }) => ({ jobId, attemptId: jobId, hasKeys: true }))
    const root = await plan(completeStatement(db, completions, 'count'))
    expect(reads(root, 'live_jobs')).not.toContain('Seq Scan')
    expect(indexesRead(root)).toContain('live_jobs_pkey')
    expect(indexesRead(root)).not.toContain('live_jobs_lease')
    expect(nodesOf(root).map((node) => node['Node Type'])).not.toContain('Sort')
  })

  const lists: [string, ListOptions][] = [
    ['everything', {}],
    ['the failed ones', { status: 'failed' }],
    ['the running ones', { status: 'running' }],
    ['the pending ones', { status: 'pending' }],
    ['those of a lock', { lockKey: 'l' }],
    ['children', { parentJobId: '0'.repeat(32) }],
    ['those of a pipeline', { pipelineId: '0'.repeat(32) }],
    ['those in several states', { status: ['failed', 'cancelled', 'running'] }],
    ['those with an error code', { errorCode: 'TimeoutError' }],
    ['those of a time', { submittedFrom: '2026-01-01T00:00:00Z', submittedBefore: '2026-01-02T00:00:00Z' }],
    ['those before another', { after: 'f'.repeat(32) }],
  ]
  test.each(lists)('listing %s newest first reads one page of jobs, as prepared', async (_, options) => {
    const { text, values } = listStatement(db, options)
    await client.query(`set plan_cache_mode = force_generic_plan; prepare list as ${text}`)
    const root = await plan({ text: `execute list (${given(values)})`, values: [] })
    await client.query('deallocate list; reset plan_cache_mode')
    expect(blocks(root)).toBeLessThan(1000)
  })

  // No index finds these, and no job fits: the worst case.
  const scans: [string, ListOptions][] = [
    ['an operation', { operation: 'other' }],
    ['a queue', { queue: 'other' }],
    ['a worker', { workerId: 'nobody' }],
    ['a time of completion', { completedFrom: '2100-01-01T00:00:00Z' }],
    ['a text', { text: 'needle' }],
    ['an operation of jobs in several states', { operation: 'other', status: ['completed', 'failed'] }],
  ]
  test.each(scans)('a page of jobs by %s looks at 10,000 of them at most, as prepared', async (_, options) => {
    const end = idsStatement(db, options, { stretch: {}, limit: 1, offset: scanRows - 1, scanned: false })
    const { rows: last } = await client.query<{ job_id: string }>(end.text, [...end.values])
    const { text, values } = listStatement(db, options, last[0]?.job_id)
    await client.query(`set plan_cache_mode = force_generic_plan; prepare list as ${text}`)
    const root = await plan({ text: `execute list (${given(values)})`, values: [] })
    await client.query('deallocate list; reset plan_cache_mode')
    expect(root['Actual Rows']).toBe(0)
    // Each job may be on a page of its own, found over an index.
    expect(blocks(root)).toBeLessThan(3 * scanRows)
    expect(blocks(await plan(end))).toBeLessThan(2 * scanRows)
  })
})

describe(`with ${rows} running jobs besides`, () => {
  beforeAll(async () => {
    // All but three of them hold their leases.
    await client.query(`
      insert into live_jobs (job_id, operation, queue, payload, status, run_after, attempt_id, attempts, max_attempts,
                             locked_by, locked_at, lease_until, started_at, submitted_at)
      select new_job_id(now() - interval '2 hours', nth), 'work', 'busy', '{}', 'running', now(), gen_random_uuid(), 1, 3,
             'w', now(), now() + case when nth <= 3 then - interval '1 minute' else interval '1 day' end, now(), now()
        from generate_series(1, ${rows}) nth`)
    await client.query('vacuum analyze live_jobs')
  }, 180_000)

  test('the autoscaler’s count is answered from indexes, and reads no job that holds its lease', async () => {
    const text = `select count(*) from fencepost.job_queue where claimed_at is null and visible_at <= now()`
    const root = await plan({ text, values: [] })
    expect(indexesRead(root)).toEqual(['live_jobs_due', 'live_jobs_lease', 'live_jobs_running_unclaimed'])
    const expired = nodesOf(root).find((node) => node['Index Name'] === 'live_jobs_lease')
    expect(expired).toMatchObject({ 'Actual Rows': 3 })
    expect(blocks(expired as Node)).toBeLessThan(200) // most of them the clock of tests
  })
})
