import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Engine } from '../src/engine.ts'
import { PermanentError, RetryLater } from '../src/errors.ts'
import { raw } from '../src/database/sql.ts'
import { child, defer } from '../src/lifecycle/defer.ts'
import { claimOne, openBed, submitted, work, type Bed } from './bed.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

/** Adds a column to every table and view of the schema, as a later release would. */
async function addColumns(): Promise<void> {
  const relations = await bed.query<{ name: string; kind: string; definition: string }>(
    `select relname as name, relkind as kind, pg_get_viewdef(oid) as definition
       from pg_class where relnamespace = 'fencepost'::regnamespace and relkind in ('r', 'v')`,
  )
  for (const { name, kind, definition } of relations) {
    await bed.query(
      kind === 'r'
        ? `alter table fencepost.${name} add column added text not null default 'x'`
        : `create or replace view fencepost.${name} as
           select was.*, 'x'::text as added from (${definition.replace(/;\s*$/, '')}) was`,
    )
  }
}

/** Sends about every statement that the engine has, and says what became of the jobs. */
async function everything(engine: Engine): Promise<Record<string, unknown>> {
  await bed.reset()
  const outcomes: Record<string, unknown> = {}
  const keys = { lockKey: 'table:a', slotKey: 'slot:a', dedupKey: 'key:a' }

  const chaining = await submitted(engine.submit(work, {}, keys))
  outcomes['refused'] = [(await engine.submit(work, {}, keys)).submitted]
  outcomes['explained'] = (await engine.explain(chaining))?.reasons.map(({ reason }) => reason)
  const first = await claimOne(engine)
  await engine.renew([first])
  await first.emit('work.begun')
  await first.progress(1, 2)
  await first.step('part', async () => 'done')
  await first.transaction(async (client) => client.query('select 1'))
  first.chain(work, {})
  await engine.complete(first, { chained: true })
  await engine.complete(await claimOne(engine), null)
  const pipelineId = (await engine.get(chaining))?.pipelineId ?? ''
  outcomes['pipeline'] = (await engine.pipeline(pipelineId))?.jobs.map(({ status }) => status)

  const failing = await submitted(engine.submit(work, {}, { maxAttempts: 2, slotKey: 'slot:a' }))
  await engine.release(await claimOne(engine), 'stopping')
  await engine.fail(await claimOne(engine), new RetryLater('busy', 0))
  await engine.fail(await claimOne(engine), new Error('once'))
  await bed.advance(3_600_000)
  await engine.fail(await claimOne(engine), new PermanentError('for good'))

  const parent = await submitted(engine.submit(work, {}))
  await engine.complete(await claimOne(engine), defer([child(work, {}), child(work, {})]))
  for (const attempt of await engine.claim({ limit: 2 })) await engine.complete(attempt, null)

  const expiring = await submitted(engine.submit(work, {}, { maxAttempts: 2, lockKey: 'table:b' }))
  await claimOne(engine)
  await bed.advance(3_600_000)
  await engine.sweep()
  await claimOne(engine)
  await bed.advance(3_600_000)
  await engine.sweep()
  const recovered = await submitted(engine.submit(work, {}, { slotKey: 'slot:b' }))
  await claimOne(engine)
  await bed.query(`update fencepost.live_jobs set locked_at = locked_at - interval '1 day'`)
  outcomes['recovered'] = await engine.recover(recovered)
  await engine.cancel(recovered)
  for (const [name, jobId] of Object.entries({ chaining, failing, parent, expiring, recovered })) {
    outcomes[name] = [(await engine.get(jobId))?.status, (await engine.events(jobId)).map(({ event }) => event)]
  }

  const again = await engine.runAgain(failing)
  if (!again.ranAgain) throw new Error('not run again')
  outcomes['again'] = [(await engine.get(again.jobId))?.status, (await engine.cancel(again.jobId)).cancelled]

  const working = new AbortController()
  const worked = engine.work({ signal: working.signal, concurrency: 2, wakeUp: 'none', pollMs: 50 })
  const many = await engine.submitMany(work, [{ payload: {} }, { payload: {} }])
  const ids = many.flatMap((answer) => (answer.submitted ? answer.jobId : []))
  await expect
    .poll(async () => [...(await engine.getMany(ids)).values()].map(({ status }) => status))
    .toEqual(['completed', 'completed'])
  outcomes['workers'] = (await engine.workers()).map(({ workerId }) => workerId)
  working.abort()
  await worked

  await engine.setDrain('all')
  outcomes['drain'] = (await engine.drain()).level
  await engine.setDrain('off')
  await engine.delete(chaining)
  outcomes['left'] = (await engine.list()).length
  await bed.advance(400 * 86_400_000)
  outcomes['removed'] = await engine.retain()
  return outcomes
}

test('a running engine goes on when a release adds a column to every table and view', async () => {
  // One connection, so that every statement is already prepared on it.
  const engine = await bed.open({ maxConnections: 1 })
  const connection = () => engine.database.query('pid', raw('select pg_backend_pid() as pid'))
  const before = await everything(engine)
  const connected = await connection()
  await addColumns()
  expect(await everything(engine)).toEqual(before)
  expect(await connection()).toEqual(connected) // no plan was stale
})

test('a statement whose result has another type now is sent again on a new connection', async () => {
  await bed.query('create table public.changing (value integer); insert into changing values (1)')
  const statement = raw('select value from public.changing')
  const lane = bed.database.lane()
  const inTransaction = () => bed.database.transaction('changing', (db) => db.query('changing', statement))
  const all = () => [bed.database.query('changing', statement), lane.query('changing', statement), inTransaction()]
  try {
    expect(await Promise.all(all())).toEqual([[{ value: 1 }], [{ value: 1 }], [{ value: 1 }]])
    await bed.query('alter table public.changing alter value type text')
    expect(await Promise.all(all())).toEqual([[{ value: '1' }], [{ value: '1' }], [{ value: '1' }]])
  } finally {
    await lane.close()
  }
})

test('no statement takes all columns of a table or view with an asterisk', () => {
  // Of a subquery it may: that one names them.
  const asterisk = /\breturning\s+\*|\bselect\s+\*\s+from\s+\$\{(db\.)?t\./
  const sources = ['../src', '../../server/src', '../../cli/src'].flatMap((folder) => {
    const path = join(import.meta.dirname, folder)
    return readdirSync(path, { recursive: true, encoding: 'utf8' }).map((file) => join(path, file))
  })
  const statements = sources.filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  expect(statements.filter((file) => asterisk.test(readFileSync(file, 'utf8')))).toEqual([])
})
