import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkStep } from '../../src/attempt/step.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { prepareSubmission } from '../../src/lifecycle/submission.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { openBreaker, type Breaker, type Path } from './broken-off.ts'

let bed: Bed
let breaker: Breaker
beforeAll(async () => {
  bed = await openBed()
  await bed.query('create table user_rows (name text primary key)')
  breaker = await openBreaker(bed)
})
afterAll(async () => {
  await bed.close()
  await breaker.close()
})

const pipelineId = 'a'.repeat(32)
const steps = [
  checkStep({ step: 'one', success: true, result: { n: 1 } }, 1000),
  checkStep({ step: 'two', success: false, error: 'broken' }, 1000),
]

/** Everything the engine does in a transaction of more than one statement, with all that can be part of it. */
const paths: Path[] = [
  {
    name: 'submit with a lock and a dedup key',
    prepare: async (engine) => () => engine.submit(work, { n: 1 }, { lockKey: 'l', dedupKey: 'd', slotKey: 's' }),
  },
  {
    name: 'submit that takes over a lapsed lock',
    prepare: async (engine) => {
      await submitted(engine.submit(work, {}, { lockKey: 'l' }))
      const attempt = await claimOne(engine)
      await engine.cancel(attempt.jobId)
      await bed.advance(60_000)
      return () => engine.submit(work, { n: 1 }, { lockKey: 'l', dedupKey: 'd' })
    },
  },
  {
    name: 'submit many, with conflicts',
    prepare: async (engine) => {
      await submitted(engine.submit(work, {}, { lockKey: 'b' }))
      await submitted(engine.submit(work, {}, { dedupKey: 'y' }))
      const options = [
        { lockKey: 'a', dedupKey: 'x' },
        { lockKey: 'b', dedupKey: 'z' },
        { lockKey: 'c', dedupKey: 'y' },
        { dedupKey: 'w' },
      ]
      return () =>
        engine.submitMany(
          work,
          options.map((one) => ({ payload: {}, options: one })),
        )
    },
  },
  {
    name: 'complete with steps and chained jobs',
    prepare: async (engine) => {
      await submitted(engine.submit(work, {}, { lockKey: 'held' }))
      await submitted(engine.submit(work, {}, { lockKey: 'l', slotKey: 's', pipelineId, priority: -1 }))
      const attempt = await claimOne(engine)
      const chain = [
        await prepareSubmission(work, { n: 1 }, { lockKey: 'l' }, 1000),
        await prepareSubmission(work, { n: 2 }, { lockKey: 'held' }, 1000),
      ]
      return () => engine.settle(attempt, { kind: 'completed', result: '{"ok":true}', steps, chain })
    },
  },
  {
    name: 'fail with steps',
    prepare: async (engine) => {
      await submitted(engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
      const attempt = await claimOne(engine)
      return () => engine.settle(attempt, { kind: 'failed', error: 'no', errorCode: 'No', permanent: true, steps })
    },
  },
  {
    name: 'defer to children with locks',
    prepare: async (engine) => {
      await submitted(engine.submit(work, {}, { lockKey: 'l', slotKey: 's', pipelineId }))
      const attempt = await claimOne(engine)
      const children = [child(work, { n: 1 }, { lockKey: 'a' }), child(work, { n: 2 }, { dedupKey: 'd' })]
      return () => engine.complete(attempt, defer(children, { result: { deferred: true } }))
    },
  },
  {
    name: 'cancel of a tree',
    prepare: async (engine) => {
      const jobId = await submitted(engine.submit(work, {}, { lockKey: 'l', slotKey: 's' }))
      await engine.complete(await claimOne(engine), defer([child(work, {}, { lockKey: 'a' }), child(work, {})]))
      await engine.complete(await claimOne(engine), defer([child(work, {}, { slotKey: 't' })]))
      await engine.claim({ limit: 2 })
      return () => engine.cancel(jobId, { by: 'operator' })
    },
  },
  {
    name: 'abort of a pipeline',
    prepare: async (engine) => {
      await submitted(engine.submit(work, {}, { lockKey: 'l', pipelineId }))
      await submitted(engine.submit(work, {}, { lockKey: 'm', slotKey: 's', pipelineId }))
      await claimOne(engine)
      return () => engine.abortPipeline(pipelineId)
    },
  },
  {
    name: 'transaction of an attempt',
    prepare: async (engine) => {
      await submitted(engine.submit(work, {}))
      const attempt = await claimOne(engine)
      return () =>
        attempt.transaction(async (client) => {
          await client.query(`insert into user_rows values ('mine') on conflict do nothing`)
          await engine.submit(work, {}, { client, dedupKey: 'd' })
        })
    },
  },
]

describe.each(paths)('$name', (path) => {
  test('is all there or not at all when its connection breaks before any statement, and can be repeated', async () => {
    const { statements, answer } = await breaker.whole(path)
    expect(answer).not.toMatchObject({ settled: false })
    expect(statements.length).toBeGreaterThan(2)
    for (let nth = 1; nth <= statements.length; nth += 1) await breaker.expectAllOrNothing(nth, 'before the statement')
  })

  test('is all there when its connection breaks after the commit, and can be repeated', async () => {
    const { statements } = await breaker.whole(path)
    const commits = [...statements.keys()].filter((index) => statements[index]?.endsWith('.commit'))
    expect(commits.length).toBeGreaterThan(0)
    for (const index of commits) await breaker.expectAllOrNothing(index + 1, 'after the statement')
  })
})
