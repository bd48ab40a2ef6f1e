import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { PermanentError } from '../../src/errors.ts'
import type { Attempt } from '../../src/attempt/attempt.ts'
import type { Outcome } from '../../src/attempt/settle.ts'
import type { Engine } from '../../src/engine.ts'
import { closeParents } from '../../src/lifecycle/close.ts'
import { child, defer, type FailWhen } from '../../src/lifecycle/defer.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { endBackend } from './broken-off.ts'
import { completing } from './uncommitted.ts'

let bed: Bed
let other: Engine
const gate = new Gate()
let slow: Engine
const otherGate = new Gate()
let otherSlow: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
  slow = await bed.open({}, { pausePoint: gate.pausePoint })
  otherSlow = await bed.open({}, { pausePoint: otherGate.pausePoint })
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const done: Outcome = { kind: 'completed', result: 'null', steps: [], chain: [] }

/** A parent that waits, and its children, running. */
async function family(size = 2, failWhen: FailWhen = 'any'): Promise<{ parentId: string; children: Attempt[] }> {
  const parentId = await submitted(bed.engine.submit(work, {}, { lockKey: 'of the parent' }))
  const parent = await claimOne(bed.engine)
  const wanted = Array.from({ length: size }, () => child(work, {}))
  expect(await bed.engine.complete(parent, defer(wanted, { failWhen, result: { parent: true } }))).toEqual({
    settled: true,
  })
  const children = await bed.engine.claim({ limit: size })
  expect(children).toHaveLength(size)
  return { parentId, children }
}

async function two(failWhen: FailWhen = 'any'): Promise<{ parentId: string; first: Attempt; second: Attempt }> {
  const { parentId, children } = await family(2, failWhen)
  const [first, second] = children
  if (first === undefined || second === undefined) throw new Error('no children')
  return { parentId, first, second }
}

const endsOf = async (jobId: string) =>
  (await bed.engine.events(jobId))
    .map(({ event }) => event)
    .filter((event) => ['job.completed', 'job.failed', 'job.cancelled'].includes(event))

async function expectClosed(parentId: string, total = 2): Promise<void> {
  expect(await bed.engine.get(parentId)).toMatchObject({
    status: 'completed',
    children: { total, completed: total, failed: 0 },
    result: { parent: true },
  })
  expect(await endsOf(parentId)).toEqual(['job.completed'])
  expect(await bed.query('select from fencepost.resource_locks')).toEqual([])
}

describe('the last two children that end together', () => {
  test('the one that commits first does not close the parent, the other one does', async () => {
    const { parentId, first, second } = await two()
    const held = await bed.hold(completing(first))
    expect(await other.complete(second)).toEqual({ settled: true })
    expect(await bed.engine.get(parentId)).toMatchObject({ status: 'running', children: { total: 2, completed: 1 } })
    await held.commit()
    expect(await bed.engine.get(parentId)).toMatchObject({ status: 'running', children: { total: 2, completed: 2 } })
    const closed = await bed.hold((db) => closeParents(db, [parentId]))
    await closed.commit()
    expect(closed.value).toEqual([parentId])
    await expectClosed(parentId)
  })

  test('the first to commit may come last to the closing, and finds it done', async () => {
    const { parentId, first, second } = await two()
    const stop = gate.stopAt('close')
    const slowly = slow.complete(first)
    await stop.reached
    expect(await other.complete(second)).toEqual({ settled: true })
    await expectClosed(parentId)
    stop.go()
    expect(await slowly).toEqual({ settled: true })
    await expectClosed(parentId)
  })

  test('both may come to the closing at once, and one of them does it', async () => {
    const { parentId, first, second } = await two()
    const stops = [gate.stopAt('close'), otherGate.stopAt('close')]
    const both = [slow.complete(first), otherSlow.complete(second)]
    await Promise.all(stops.map(({ reached }) => reached))
    expect(await bed.engine.get(parentId)).toMatchObject({ status: 'running' })
    for (const stop of stops) stop.go()
    expect(await Promise.all(both)).toEqual([{ settled: true }, { settled: true }])
    await expectClosed(parentId)
  })

  test('a closing under way is not waited for, and is not done twice', async () => {
    const { parentId, first, second } = await two()
    await (await bed.hold(completing(first, second))).commit()
    const held = await bed.hold((db) => closeParents(db, [parentId]))
    expect(held.value).toEqual([parentId])
    expect(await other.sweep()).toMatchObject({ closed: [] })
    await held.commit()
    expect(await other.sweep()).toMatchObject({ closed: [] })
    await expectClosed(parentId)
  })

  test('a closing that rolls back is made good by the sweep', async () => {
    const { parentId, first, second } = await two()
    await (await bed.hold(completing(first, second))).commit()
    await (await bed.hold((db) => closeParents(db, [parentId]))).rollback()
    expect(await other.sweep()).toMatchObject({ closed: [parentId] })
    await expectClosed(parentId)
  })

  test('a process that dies between ending the last child and closing the parent is made good by the sweep', async () => {
    const { parentId, first, second } = await two()
    await bed.engine.complete(first)
    const dying = await bed.open(
      {},
      {
        pausePoint: async ({ statement, processId }) => {
          if (statement === 'close') await endBackend(bed, processId)
        },
      },
    )
    expect(await dying.complete(second)).toEqual({ settled: true }) // it is: the child has ended
    expect(await bed.engine.get(parentId)).toMatchObject({ status: 'running', children: { total: 2, completed: 2 } })
    expect(await bed.engine.sweep()).toMatchObject({ closed: [parentId] })
    await expectClosed(parentId)
  })

  test('one fails and one completes: whichever is last, the parent is judged by both', async () => {
    for (const order of ['failure last', 'completion last']) {
      const { parentId, first, second } = await two()
      const fail = () => slow.fail(first, new PermanentError('broken'))
      const complete = () => other.complete(second)
      for (const end of order === 'failure last' ? [complete, fail] : [fail, complete]) {
        expect(await end()).toEqual({ settled: true })
      }
      expect(await bed.engine.get(parentId)).toMatchObject({
        status: 'failed',
        errorCode: 'children_failed',
        error: '1 of 2 children failed: PermanentError: broken',
        children: { total: 2, completed: 1, failed: 1 },
      })
      expect(await endsOf(parentId)).toEqual(['job.failed'])
    }
  })

  test('one is cancelled while the other completes: both count, once', async () => {
    const { parentId, first, second } = await two('all')
    const stop = gate.stopAt('cancel.commit')
    const cancelled = slow.cancel(first.jobId)
    await stop.reached
    expect(await other.complete(second)).toEqual({ settled: true })
    stop.go()
    expect(await cancelled).toEqual({ cancelled: true, jobIds: [first.jobId] })
    expect(await bed.engine.get(parentId)).toMatchObject({
      status: 'completed',
      children: { total: 2, completed: 1, failed: 1 },
    })
    expect(await endsOf(parentId)).toEqual(['job.completed'])
  })

  test('a child that expired, was retried and reports twice counts once', async () => {
    const { parentId, first, second } = await two()
    await bed.advance(60_000)
    await bed.engine.sweep()
    const [again, third] = await other.claim({ limit: 2 })
    if (again === undefined || third === undefined) throw new Error('nothing to claim')
    expect(await other.complete(again)).toEqual({ settled: true })
    expect(await other.complete(again)).toEqual({ settled: true })
    expect(await bed.engine.complete(first)).toEqual({ settled: false, why: 'fence_lost' })
    expect(await bed.engine.complete(second)).toEqual({ settled: false, why: 'fence_lost' })
    expect(await bed.engine.get(parentId)).toMatchObject({ status: 'running', children: { total: 2, completed: 1 } })
    expect(await other.complete(third)).toEqual({ settled: true })
    await expectClosed(parentId)
  })
})

describe('children that end at once, many times', () => {
  const families = 15

  async function many(): Promise<{ parents: string[]; pairs: [Attempt, Attempt][] }> {
    const parents: string[] = []
    for (let n = 0; n < families; n += 1) parents.push(await submitted(bed.engine.submit(work, {})))
    for (const parent of await bed.engine.claim({ limit: families })) {
      await bed.engine.complete(parent, defer([child(work, {}), child(work, {})], { result: { parent: true } }))
    }
    const children = await bed.engine.claim({ limit: 2 * families })
    const pairs = parents.map((id) => children.filter(({ claimed }) => claimed.parentJobId === id))
    return { parents, pairs: pairs as [Attempt, Attempt][] }
  }

  test('one by one: every parent is closed once, without a sweep', async () => {
    const { parents, pairs } = await many()
    await Promise.all(pairs.flatMap(([first, second]) => [slow.complete(first), other.complete(second)]))
    for (const parentId of parents) await expectClosed(parentId)
  })

  test('in batches: every parent is closed once, without a sweep', async () => {
    const { parents, pairs } = await many()
    const batch = (engine: Engine, nth: 0 | 1) =>
      engine.settleAll(pairs.map((pair) => ({ attempt: pair[nth], outcome: done })))
    const answers = await Promise.all([batch(slow, 0), batch(other, 1)])
    expect(answers.flat().every(({ settled }) => settled)).toBe(true)
    for (const parentId of parents) await expectClosed(parentId)
  })

  test('with sweeps in between: every parent is closed once', async () => {
    const { parents, pairs } = await many()
    await Promise.all([
      ...pairs.flatMap(([first, second]) => [slow.complete(first), other.complete(second)]),
      ...Array.from({ length: 10 }, () => bed.engine.sweep()),
    ])
    for (const parentId of parents) await expectClosed(parentId)
  })

  test('the children of one parent, in one batch, close it', async () => {
    const { parentId, children } = await family(20)
    await other.settleAll(children.map((attempt) => ({ attempt, outcome: done })))
    await expectClosed(parentId, 20)
  })
})

describe('coordinators of coordinators', () => {
  test('the last grandchild closes its parent and its grandparent', async () => {
    const { parentId, first, second } = await two()
    await bed.engine.complete(first)
    await bed.engine.complete(second, defer([child(work, {}), child(work, {})]))
    expect(await bed.engine.get(parentId)).toMatchObject({ status: 'running', children: { total: 2, completed: 1 } })
    const [one, last] = await bed.engine.claim({ limit: 2 })
    if (one === undefined || last === undefined) throw new Error('nothing to claim')
    await Promise.all([slow.complete(one), other.complete(last)])
    expect(await bed.engine.get(second.jobId)).toMatchObject({ status: 'completed', children: { completed: 2 } })
    await expectClosed(parentId)
  })

  test('a middle one that nobody closed is closed by the sweep, and the top one with it', async () => {
    const { parentId, first, second } = await two()
    await bed.engine.complete(first)
    await bed.engine.complete(second, defer([child(work, {})]))
    const last = await claimOne(other)
    await (await bed.hold(completing(last))).commit()
    expect(await bed.engine.get(second.jobId)).toMatchObject({ status: 'running' })
    const swept = await bed.engine.sweep()
    expect([...(swept?.closed ?? [])].sort()).toEqual([parentId, second.jobId].sort())
    await expectClosed(parentId)
  })

  test('the last child falls silent on its last attempt: the sweep ends it and closes the parent', async () => {
    const parentId = await submitted(bed.engine.submit(work, {}))
    const parent = await claimOne(bed.engine)
    await bed.engine.complete(parent, defer([child(work, {}, { maxAttempts: 1 })]))
    const last = await claimOne(other)
    await bed.advance(60_000)
    expect(await bed.engine.sweep()).toMatchObject({ failed: [last.jobId], closed: [parentId] })
    expect(await bed.engine.get(parentId)).toMatchObject({ status: 'failed', children: { total: 1, failed: 1 } })
    expect(await other.complete(last)).toEqual({ settled: false, why: 'fence_lost' })
  })
})
