import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { child, defer } from '../../src/lifecycle/defer.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { tableRows } from './table-rows.ts'

const pipelineId = 'a'.repeat(32)

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

const statuses = async (id = pipelineId) => (await bed.engine.pipeline(id))?.jobs.map(({ status }) => status)

describe('an abort of a pipeline', () => {
  test('while a job of it completes and chains the next: waits, and cancels the chained job too', async () => {
    await submitted(bed.engine.submit(work, {}, { pipelineId, lockKey: 'l' }))
    const attempt = await claimOne(slow)
    attempt.chain(work, {}, { lockKey: 'l' })
    const stop = gate.stopAt('complete.commit')
    const completed = slow.complete(attempt)
    await stop.reached
    const late = other.abortPipeline(pipelineId)
    await bed.blocked()
    stop.go()
    expect(await completed).toEqual({ settled: true })
    const chained = (await bed.engine.pipeline(pipelineId))?.jobs[1]?.jobId
    expect(await late).toEqual({ aborted: true, jobIds: [chained] })
    expect(await statuses()).toEqual(['completed', 'cancelled'])
    expect(await other.claim()).toEqual([])
    expect(await tableRows(bed)).toMatchObject({ live_jobs: [], resource_locks: [] })
  })

  test('that comes first: the completion waits, finds its fence lost, and chains nothing', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}, { pipelineId }))
    const attempt = await claimOne(other)
    attempt.chain(work, {})
    const stop = gate.stopAt('cancel.commit')
    const aborted = slow.abortPipeline(pipelineId)
    await stop.reached
    const late = other.complete(attempt)
    await bed.blocked()
    stop.go()
    expect(await aborted).toEqual({ aborted: true, jobIds: [jobId] })
    expect(await late).toEqual({ settled: false, why: 'fence_lost' })
    expect(await statuses()).toEqual(['cancelled'])
  })

  test('between its look and its cancel the job chains and is gone: the chained job is found all the same', async () => {
    await submitted(bed.engine.submit(work, {}, { pipelineId }))
    const attempt = await claimOne(other)
    attempt.chain(work, {})
    const stop = gate.stopAt('cancel.begin')
    const aborted = slow.abortPipeline(pipelineId)
    await stop.reached
    expect(await other.complete(attempt)).toEqual({ settled: true })
    stop.go()
    expect(await aborted).toMatchObject({ aborted: true })
    expect(await statuses()).toEqual(['completed', 'cancelled'])
  })

  test('while a chained job is claimed and chains on: the whole of it ends', async () => {
    await submitted(bed.engine.submit(work, {}, { pipelineId }))
    const first = await claimOne(other)
    first.chain(work, {})
    const stop = gate.stopAt('cancel.begin')
    const aborted = slow.abortPipeline(pipelineId)
    await stop.reached
    await other.complete(first)
    const second = await claimOne(other)
    second.chain(work, {})
    await other.complete(second)
    stop.go()
    expect(await aborted).toMatchObject({ aborted: true })
    expect(await statuses()).toEqual(['completed', 'completed', 'cancelled'])
  })

  test('while a job of it defers to children: cancels them too', async () => {
    await submitted(bed.engine.submit(work, {}, { pipelineId }))
    const attempt = await claimOne(slow)
    const stop = gate.stopAt('defer.commit')
    const deferral = slow.complete(attempt, defer([child(work, {}), child(work, {})]))
    await stop.reached
    const late = other.abortPipeline(pipelineId)
    await bed.blocked()
    stop.go()
    await deferral
    expect(await late).toMatchObject({ aborted: true })
    expect(await statuses()).toEqual(['cancelled', 'cancelled', 'cancelled'])
  })

  test('that finds everything ended says so, and one of an unknown pipeline too', async () => {
    await submitted(bed.engine.submit(work, {}, { pipelineId }))
    await other.complete(await claimOne(other))
    expect(await other.abortPipeline(pipelineId)).toEqual({ aborted: false, why: 'nothing_to_abort' })
    expect(await other.abortPipeline('b'.repeat(32))).toEqual({ aborted: false, why: 'not_found' })
  })
})

test('two jobs that chain each other’s lock at once both complete, and each chained job is accounted for', async () => {
  await submitted(bed.engine.submit(work, {}, { lockKey: 'a' }))
  await submitted(bed.engine.submit(work, {}, { lockKey: 'b' }))
  const [one, two] = await other.claim({ limit: 2 })
  if (one === undefined || two === undefined) throw new Error('nothing to claim')
  one.chain(work, {}, { lockKey: 'b' })
  two.chain(work, {}, { lockKey: 'a' })
  const stop = gate.stopAt('submit.locks')
  const first = slow.complete(one) // has given up a, wants b
  await stop.reached
  const second = other.complete(two) // has given up b, waits for a
  await bed.blocked()
  stop.go() // Postgres breaks the deadlock, and whoever was ended repeats
  expect(await Promise.all([first, second])).toEqual([{ settled: true }, { settled: true }])
  const chained = await bed.query<{ status: string; error_code: string | null }>(
    `select status, error_code from fencepost.jobs where pipeline_id is not null and job_id <> pipeline_id`,
  )
  expect(chained).toHaveLength(2)
  for (const { status, error_code: code } of chained) {
    expect([status, code]).toEqual(status === 'failed' ? ['failed', 'lock_conflict'] : ['pending', null])
  }
  expect(
    await bed.query(`select from fencepost.resource_locks l where not exists
    (select from fencepost.live_jobs j where j.job_id = l.job_id)`),
  ).toEqual([])
})
