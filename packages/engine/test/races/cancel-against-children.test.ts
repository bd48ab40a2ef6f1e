import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Engine } from '../../src/engine.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { endBackend } from './broken-off.ts'
import { claimingJob, completing } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
const gate = new Gate()
let slow: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
  slow = await bed.open({}, { pausePoint: gate.pausePoint })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

async function deferred(...lockKeys: string[]): Promise<{ parentId: string; childIds: string[] }> {
  const parentId = await submitted(bed.engine.submit(work, {}, { lockKey: 'of the parent' }))
  const wanted = lockKeys.map((lockKey) => child(work, {}, { lockKey }))
  await bed.engine.complete(await claimOne(bed.engine), defer(wanted))
  const children = await bed.engine.children(parentId)
  return { parentId, childIds: children.map(({ jobId }) => jobId).sort() }
}

const statuses = async (...jobIds: string[]) =>
  Promise.all(jobIds.map(async (jobId) => (await bed.engine.get(jobId))?.status))
const locks = async () => (await tableRows(bed)).resource_locks?.map(({ lock_key: key }) => key)

async function running(jobId: string): Promise<Attempt> {
  const answer = await bed.engine.claimJob(jobId)
  if (!answer.claimed) throw new Error('not claimed')
  return answer.attempt
}

describe('a child that ends while its parent is cancelled', () => {
  test('the child comes first: the cancel waits, leaves it completed and cancels the rest', async () => {
    const { parentId, childIds } = await deferred('a', 'b')
    const [a = '', b = ''] = childIds
    const held = await bed.hold(completing(await running(a)))
    const late = other.cancel(parentId)
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ cancelled: true, jobIds: [parentId, b] })
    expect(await statuses(parentId, a, b)).toEqual(['cancelled', 'completed', 'cancelled'])
    expect(await bed.engine.sweep()).toMatchObject({ closed: [] })
    expect(await locks()).toEqual([])
  })

  test('the last child comes first, but not to the closing: the parent is cancelled, and stays so', async () => {
    const { parentId, childIds } = await deferred('a')
    const attempt = await running(childIds[0] ?? '')
    const stop = gate.stopAt('close')
    const completed = slow.complete(attempt)
    await stop.reached
    expect(await other.cancel(parentId)).toEqual({ cancelled: true, jobIds: [parentId] })
    stop.go()
    expect(await completed).toEqual({ settled: true })
    expect(await statuses(parentId, attempt.jobId)).toEqual(['cancelled', 'completed'])
    expect(await bed.engine.sweep()).toMatchObject({ closed: [] })
  })

  test('the cancel comes first: the child waits and finds its fence lost', async () => {
    const { parentId, childIds } = await deferred('a', 'b')
    const attempt = await running(childIds[0] ?? '')
    const stop = gate.stopAt('cancel.commit')
    const cancelled = slow.cancel(parentId)
    await stop.reached
    const late = other.complete(attempt)
    await bed.blocked()
    stop.go()
    expect(await cancelled).toEqual({ cancelled: true, jobIds: [parentId, ...childIds] })
    expect(await late).toEqual({ settled: false, why: 'fence_lost' })
    expect(await statuses(parentId, ...childIds)).toEqual(['cancelled', 'cancelled', 'cancelled'])
    expect(await locks()).toEqual([])
  })

  test('a running child keeps its lock until its worker lets go, the pending ones and the parent lose theirs', async () => {
    const { parentId, childIds } = await deferred('a', 'b')
    const attempt = await running(childIds[0] ?? '')
    await other.cancel(parentId)
    expect(await locks()).toEqual(['a'])
    await attempt.letGo()
    expect(await locks()).toEqual([])
  })

  test('a child that is being claimed is waited for, and cancelled as running', async () => {
    const { parentId, childIds } = await deferred('a')
    const held = await bed.hold(claimingJob(childIds[0] ?? ''))
    const late = other.cancel(parentId)
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ cancelled: true, jobIds: [parentId, ...childIds] })
    expect(await locks()).toEqual(['a'])
  })

  test('the closing comes first: the cancel is told that the parent has completed', async () => {
    const { parentId, childIds } = await deferred('a')
    await other.complete(await running(childIds[0] ?? ''))
    expect(await other.cancel(parentId)).toEqual({ cancelled: false, why: 'finished', status: 'completed' })
  })

  test('the children of a cancelled parent are cancelled one by one too, without closing anything twice', async () => {
    const { parentId, childIds } = await deferred('a', 'b')
    const answers = await Promise.all([
      other.cancel(parentId),
      ...childIds.map((jobId) => slow.cancel(jobId)),
      bed.engine.sweep(),
    ])
    expect(answers).toHaveLength(4)
    const ended = await bed.query<{ n: number }>(
      `select count(*)::integer as n from fencepost.job_events where event in ('job.cancelled', 'job.failed') group by job_id`,
    )
    expect(ended).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }])
    expect((await statuses(...childIds)).every((status) => status === 'cancelled')).toBe(true)
  })
})

describe('a cancel against a defer', () => {
  test('waits for a defer under way, and cancels the new children too', async () => {
    const parentId = await submitted(bed.engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
    const stop = gate.stopAt('defer.commit')
    const attempt = await claimOne(slow)
    const deferral = slow.complete(attempt, defer([child(work, {}), child(work, {}, { lockKey: 'a' })]))
    await stop.reached
    const late = other.cancel(parentId)
    await bed.blocked()
    stop.go()
    expect(await deferral).toEqual({ settled: true })
    const answer = await late
    const children = await bed.engine.children(parentId)
    expect(children.map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(answer).toMatchObject({ cancelled: true })
    expect(answer.cancelled && new Set(answer.jobIds)).toEqual(
      new Set([parentId, ...children.map(({ jobId }) => jobId)]),
    )
    expect(await tableRows(bed)).toMatchObject({ live_jobs: [], resource_locks: [], slots: [{ held_until: null }] })
  })

  test('a defer that rolls back leaves a running job, which is cancelled, and no children', async () => {
    const parentId = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(slow)
    const dying = new Gate()
    const engine = await bed.open(
      {},
      {
        pausePoint: async (at) => {
          await dying.pausePoint(at)
          if (at.statement === 'defer.commit') await endBackend(bed, at.processId)
        },
      },
    )
    const stop = dying.stopAt('defer.commit')
    const deferral = engine.complete(attempt, defer([child(work, {})])).catch((error: unknown) => error)
    await stop.reached
    const late = other.cancel(parentId)
    await bed.blocked()
    stop.go()
    expect(await deferral).toMatchObject({ code: 'database_unavailable', retryable: true })
    expect(await late).toEqual({ cancelled: true, jobIds: [parentId] })
    expect(await bed.engine.children(parentId)).toEqual([])
  })

  test('a defer that comes second makes no children', async () => {
    const parentId = await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(other)
    const stop = gate.stopAt('cancel.commit')
    const cancelled = slow.cancel(parentId)
    await stop.reached
    const late = other.complete(attempt, defer([child(work, {}, { lockKey: 'a' })]))
    await bed.blocked()
    stop.go()
    expect(await cancelled).toEqual({ cancelled: true, jobIds: [parentId] })
    expect(await late).toEqual({ settled: false, why: 'fence_lost' })
    expect(await tableRows(bed)).toMatchObject({ live_jobs: [], finished_jobs: [{}], resource_locks: [] })
  })

  test('of a coordinator below a coordinator: the cancel of the top one reaches the new grandchildren', async () => {
    const { parentId, childIds } = await deferred('a', 'b')
    const middle = await running(childIds[1] ?? '')
    const stop = gate.stopAt('defer.commit')
    const deferral = slow.complete(middle, defer([child(work, {}), child(work, {})]))
    await stop.reached
    const late = other.cancel(parentId)
    await bed.blocked()
    stop.go()
    await deferral
    expect(await late).toMatchObject({ cancelled: true })
    const grandchildren = await bed.engine.children(middle.jobId)
    expect(grandchildren.map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(await tableRows(bed)).toMatchObject({ live_jobs: [], resource_locks: [] })
  })
})

test('cancelling a whole tree ends each of its jobs once, parents named before children', async () => {
  const { parentId, childIds } = await deferred('a', 'b')
  await bed.engine.complete(await running(childIds[0] ?? ''), defer([child(work, {}), child(work, {})]))
  const grandchildren = (await bed.engine.children(childIds[0] ?? '')).map(({ jobId }) => jobId).sort()
  await running(grandchildren[0] ?? '')
  expect(await other.cancel(parentId)).toEqual({
    cancelled: true,
    jobIds: [parentId, ...childIds, ...grandchildren],
  })
  expect(await bed.engine.sweep()).toMatchObject({ closed: [], expired: [], failed: [] })
})
