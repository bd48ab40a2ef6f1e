import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { raw } from '../database/sql.ts'
import { openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { child, defer } from '../lifecycle/defer.ts'
import { pipelineStatus } from './pipeline.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const claimOne = async () => {
  const [attempt] = await bed.engine.claim()
  if (attempt === undefined) throw new Error('nothing to claim')
  return attempt
}

describe('list', () => {
  test('pages through all jobs, newest first, without gaps or doubles', async () => {
    await bed.engine.submitMany(
      work,
      Array.from({ length: 25 }, (_, n) => ({ payload: { n } })),
    )
    for (const attempt of await bed.engine.claim({ limit: 12 })) await bed.engine.complete(attempt)
    const seen: unknown[] = []
    for (let after: string | undefined; ;) {
      const page = await bed.engine.list({ limit: 10, ...(after === undefined ? {} : { after }) })
      seen.push(...page.map(({ payload }) => (payload as { n: number }).n))
      after = page.at(-1)?.jobId
      if (page.length < 10) break
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, n) => 24 - n))
  })

  test('filters by status, operation, queue, parent, pipeline and lock', async () => {
    const pipelineId = 'c'.repeat(32)
    const parent = await submitted(bed.engine.submit(work, {}, { pipelineId }))
    await bed.engine.complete(await claimOne(), defer([child(work, {}, { lockKey: 'l' })]))
    await submitted(bed.engine.submit(work, {}, { queue: 'other' }))
    const count = async (options: Parameters<typeof bed.engine.list>[0]) => (await bed.engine.list(options)).length
    expect(await count({})).toBe(3)
    expect(await count({ status: 'running' })).toBe(1)
    expect(await count({ status: 'pending' })).toBe(2)
    expect(await count({ operation: 'work' })).toBe(3)
    expect(await count({ operation: 'none' })).toBe(0)
    expect(await count({ queue: 'other' })).toBe(1)
    expect(await count({ parentJobId: parent })).toBe(1)
    expect(await count({ pipelineId })).toBe(2)
    expect(await count({ lockKey: 'l' })).toBe(1)
    expect(await bed.engine.children(parent)).toMatchObject([{ parentJobId: parent, lockKey: 'l' }])
  })

  test.each([
    [{ limit: 0 }, 'number_invalid'],
    [{ limit: 1001 }, 'number_invalid'],
    [{ after: 'x' }, 'id_invalid'],
    [{ status: 'done' as never }, 'options_invalid'],
  ])('refuses %j', async (options, code) => {
    await expect(bed.engine.list(options)).rejects.toMatchObject({ code })
  })
})

describe('events', () => {
  test('are read after the last one seen', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne()
    await attempt.emit('work.read', { message: 'half', level: 'warning', fields: { n: 1 }, progress: { current: 1 } })
    const all = await bed.engine.events(jobId)
    expect(all.map(({ event }) => event)).toEqual(['job.submitted', 'job.started', 'work.read'])
    expect(all[2]).toMatchObject({ level: 'warning', message: 'half', fields: { n: 1 }, attemptId: attempt.attemptId })
    await bed.engine.complete(attempt)
    const rest = await bed.engine.events(jobId, { after: all[2]?.id as string })
    expect(rest.map(({ event }) => event)).toEqual(['job.completed'])
    expect(await bed.engine.events(jobId, { limit: 1 })).toHaveLength(1)
    expect(await bed.engine.get(jobId)).toMatchObject({ progress: { current: 1, total: undefined } })
  })

  test('of a job and of all that descends from it are read by time', async () => {
    const root = await submitted(bed.engine.submit(work, {}))
    await submitted(bed.engine.submit(work, {}, { delayMs: 60_000 })) // somebody else's
    const parent = await claimOne()
    await bed.engine.complete(parent, defer([child(work, {})]))
    const middle = await claimOne()
    await bed.engine.complete(middle, defer([child(work, {})]))
    const leaf = await claimOne()
    await leaf.emit('work.read')
    const names = { [root]: 'root', [middle.jobId]: 'middle', [leaf.jobId]: 'leaf' }
    const seen = async () =>
      (await bed.engine.events(root, { descendants: true })).map(({ jobId, event }) => `${names[jobId]} ${event}`)
    expect(await seen()).toEqual([
      'root job.submitted',
      'root job.started',
      'root job.deferred',
      'middle job.submitted',
      'middle job.started',
      'middle job.deferred',
      'leaf job.submitted',
      'leaf job.started',
      'leaf work.read',
    ])
    await bed.engine.complete(leaf)
    expect((await seen()).slice(9)).toEqual(['leaf job.completed', 'middle job.completed', 'root job.completed'])
    const below = (id: string) => bed.engine.list({ ancestorJobId: id })
    expect((await below(root)).map(({ jobId }) => jobId)).toEqual([leaf.jobId, middle.jobId])
    expect(await below(leaf.jobId)).toEqual([])
    await expect(bed.engine.events(root, { descendants: true, after: '1' })).rejects.toMatchObject({
      code: 'options_invalid',
    })
    await expect(below('x')).rejects.toMatchObject({ code: 'id_invalid' })
  })

  test('of a handler keep out of the engine’s own names', async () => {
    await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne()
    for (const name of ['job.completed', 'read', 'Read.it', 'a..b', '']) {
      await expect(attempt.emit(name)).rejects.toMatchObject({ code: 'event_invalid' })
    }
    await expect(attempt.emit('a.b', { progress: { current: -1 } })).rejects.toMatchObject({ code: 'number_invalid' })
    await expect(bed.engine.events('0'.repeat(32), { after: 'x' })).rejects.toMatchObject({ code: 'id_invalid' })
  })
})

describe('explain', () => {
  const why = async (jobId: string) => (await bed.engine.explain(jobId))?.reasons.map(({ reason }) => reason)
  beforeEach(() =>
    bed.query(`insert into fencepost.workers values ('w', 'host', 1, '0', '{work}', 1, now(), fencepost.clock())`),
  )

  test('names what is in the way', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    expect(await why(jobId)).toEqual(['waiting_its_turn'])
    await bed.query('delete from fencepost.workers')
    expect(await why(jobId)).toEqual(['no_worker'])
    await bed.engine.setDrain('all')
    expect(await why(jobId)).toEqual(['drained', 'no_worker'])
    expect(await bed.engine.explain('0'.repeat(32))).toBeUndefined()
  })

  test('counts those ahead', async () => {
    await submitted(bed.engine.submit(work, {}, { priority: -1 }))
    await submitted(bed.engine.submit(work, {}, { delayMs: 60_000, priority: -1 }))
    const jobId = await submitted(bed.engine.submit(work, {}))
    const { runAfter: since } = (await bed.engine.get(jobId)) ?? {}
    expect((await bed.engine.explain(jobId))?.reasons).toEqual([{ reason: 'waiting_its_turn', ahead: 1, since }])
  })

  test('names a queue that no worker claims from', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { queue: 'nightly' }))
    expect(await why(jobId)).toEqual(['waiting_its_turn']) // that worker does not say what it claims from
    await bed.query(`update fencepost.workers set queues = '{default,daily}'`)
    expect((await bed.engine.explain(jobId))?.reasons).toEqual([{ reason: 'queue_not_served', queue: 'nightly' }])
    await bed.query(`update fencepost.workers set queues = '{nightly}'`)
    expect(await why(jobId)).toEqual(['waiting_its_turn'])
  })

  test('a worker says which queues it claims from', async () => {
    await bed.query('delete from fencepost.workers')
    const jobId = await submitted(bed.engine.submit(work, {}, { queue: 'nightly' }))
    const stop = new AbortController()
    const worked = bed.engine.work({ signal: stop.signal, queues: ['daily'], wakeUp: 'none' })
    await expect.poll(() => why(jobId)).toEqual(['queue_not_served'])
    stop.abort()
    await worked
  })

  test('a job whose row an open transaction has locked is not called next, and the transaction is named', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const lock = raw(`select pg_backend_pid() as pid, now() as since from fencepost.live_jobs for update`)
    const held = await bed.hold((db) => db.query<{ pid: number; since: string }>('lock', lock))
    expect((await bed.engine.explain(jobId))?.reasons).toEqual([{ reason: 'row_locked', ...held.value[0] }])
    await held.rollback()
    expect(await why(jobId)).toEqual(['waiting_its_turn'])
  })

  test('an attempt that a stuck sweep holds, or that no worker is left to sweep, is said to be so', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await claimOne()
    await bed.advance(31_000)
    const held = await bed.hold((db) => db.query('lock', raw('select from fencepost.live_jobs for update')))
    expect(await why(jobId)).toEqual(['lease_expired', 'row_locked'])
    await held.rollback()
    await bed.query('delete from fencepost.workers')
    expect(await why(jobId)).toEqual(['lease_expired', 'no_worker'])
  })

  test('follows a job through its life', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { delayMs: 1000 }))
    expect(await why(jobId)).toEqual(['not_due'])
    await bed.advance(1000)
    const attempt = await claimOne()
    const running = await bed.engine.explain(jobId)
    expect(running?.reasons).toMatchObject([{ reason: 'running', by: bed.engine.workerId }])
    await bed.advance(31_000)
    expect(await why(jobId)).toEqual(['lease_expired'])
    await bed.engine.complete(attempt, defer([child(work, {}), child(work, {})]))
    await bed.engine.complete(await claimOne())
    expect((await bed.engine.explain(jobId))?.reasons).toEqual([{ reason: 'waiting_for_children', ended: 1, total: 2 }])
    await bed.engine.complete(await claimOne())
    expect(await why(jobId)).toEqual(['finished'])
  })

  test('names the job in its slot, also while a cancelled one is still let go of', async () => {
    const first = await submitted(bed.engine.submit(work, {}, { slotKey: 's' }))
    const second = await submitted(bed.engine.submit(work, {}, { slotKey: 's' }))
    const attempt = await claimOne()
    expect((await bed.engine.explain(second))?.reasons).toMatchObject([{ reason: 'slot_busy', jobId: first }])
    await bed.engine.cancel(first)
    expect((await bed.engine.explain(second))?.reasons).toMatchObject([{ reason: 'slot_busy', jobId: first }])
    await attempt.letGo()
    expect(await why(second)).toEqual(['waiting_its_turn'])
  })
})

describe('pipelineStatus', () => {
  test.each([
    [['completed', 'pending'], 'running'],
    [['failed', 'running'], 'running'],
    [['completed', 'completed'], 'completed'],
    [['completed', 'failed'], 'partial'],
    [['completed', 'cancelled'], 'partial'],
    [['failed', 'cancelled'], 'failed'],
  ] as const)('of %j is %s', (statuses, expected) => {
    expect(pipelineStatus(statuses.map((status) => ({ status })))).toBe(expected)
  })

  test('leaves children to the policy of their parent', () => {
    expect(pipelineStatus([{ status: 'completed' }, { status: 'failed', parentJobId: 'p' }])).toBe('completed')
  })
})
