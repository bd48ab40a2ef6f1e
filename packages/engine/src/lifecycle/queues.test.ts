import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Gate, openBed, submitted, work, type Bed } from '../../test/bed.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const kinds = [{}, { slotKey: 's' }, { lockKey: 'l' }, { dedupKey: 'd' }]

describe('a paused queue', () => {
  test('takes submissions, and gives no job to any claim', async () => {
    await bed.engine.pauseQueue('default', { by: 'an operator' })
    const ids = await Promise.all(kinds.map((options) => submitted(bed.engine.submit(work, {}, options))))
    expect(await bed.engine.claim({ limit: 10 })).toEqual([])
    expect(await bed.engine.claimJobs(ids)).toEqual([])
    await bed.engine.resumeQueue('default')
    expect(await bed.engine.claim({ limit: 10 })).toHaveLength(kinds.length)
  })

  test('does not stop others, or jobs that run', async () => {
    const running = await submitted(bed.engine.submit(work, {}))
    const [attempt] = await bed.engine.claim()
    await bed.engine.pauseQueue('default')
    const other = await submitted(bed.engine.submit(work, {}, { queue: 'other' }))
    expect(await bed.engine.claim({ queue: 'other' })).toMatchObject([{ jobId: other }])
    expect(await bed.engine.renew(attempt === undefined ? [] : [attempt])).toEqual({ lost: [] })
    await bed.engine.run(attempt as NonNullable<typeof attempt>)
    expect((await bed.engine.get(running))?.status).toBe('completed')
  })

  test('says who paused it first, and since when', async () => {
    const first = await bed.engine.pauseQueue('default', { by: 'the first' })
    expect(await bed.engine.pauseQueue('default', { by: 'the second' })).toEqual(first)
    const jobId = await submitted(bed.engine.submit(work, {}))
    expect(first).toMatchObject({ queue: 'default', pausedBy: 'the first' })
    const explained = await bed.engine.explain(jobId)
    expect(explained?.reasons).toContainEqual({
      reason: 'queue_paused',
      queue: 'default',
      by: 'the first',
      since: first.pausedAt,
    })
    expect(explained?.message).toContain('paused by the first since')
  })

  test('is among the queues that are known, paused or not', async () => {
    await submitted(bed.engine.submit(work, {}, { queue: 'waiting' }))
    await bed.engine.pauseQueue('idle')
    expect((await bed.engine.queues()).map(({ queue, pausedAt }) => [queue, pausedAt !== undefined])).toEqual([
      ['default', false],
      ['idle', true],
      ['waiting', false],
    ])
    expect(await bed.engine.resumeQueue('idle')).toEqual({ queue: 'idle', pausedAt: undefined, pausedBy: undefined })
  })

  test('must have the name of a queue', async () => {
    await expect(bed.engine.pauseQueue('Not One')).rejects.toMatchObject({ code: 'operation_invalid' })
  })
})

test('a worker begins nothing of a paused queue, and is woken when it is resumed', async () => {
  const stop = new AbortController()
  const worked = bed.engine.work({ signal: stop.signal, pollMs: 600_000, queues: ['default', 'other'] })
  await bed.engine.pauseQueue('default')
  const paused = await submitted(bed.engine.submit(work, {}))
  const other = await submitted(bed.engine.submit(work, {}, { queue: 'other' }))
  await expect.poll(async () => (await bed.engine.get(other))?.status).toBe('completed')
  expect((await bed.engine.get(paused))?.status).toBe('pending')
  await bed.engine.resumeQueue('default')
  await expect.poll(async () => (await bed.engine.get(paused))?.status).toBe('completed')
  stop.abort()
  await worked
})

test('a claim that Postgres sees after the pause takes nothing', async () => {
  const gate = new Gate()
  const other = await bed.open({}, gate)
  const jobId = await submitted(bed.engine.submit(work, {}))
  for (const claim of [() => other.claim(), () => other.claimJobs([jobId])]) {
    const stop = gate.stopAt('claim')
    const claiming = claim()
    await stop.reached
    await bed.engine.pauseQueue('default')
    stop.go()
    expect(await claiming).toEqual([])
    await bed.engine.resumeQueue('default')
  }
})
