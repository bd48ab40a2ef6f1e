import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../bed.ts'
import { claiming, claimingJob } from './uncommitted.ts'
import { tableRows } from './table-rows.ts'

let bed: Bed
let other: Engine
beforeAll(async () => {
  bed = await openBed()
  other = await bed.open()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

describe('two claims of one job', () => {
  test.each([
    ['claim', claiming()],
    ['claim by id', undefined],
  ])('the one that comes second to a %s finds nothing, and does not wait', async (_name, first) => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const held = await bed.hold<unknown>(first ?? claimingJob(jobId))
    expect(await other.claim()).toEqual([])
    expect(await other.claimJob(jobId)).toEqual({ claimed: false })
    await held.commit()
    expect(await other.claim()).toEqual([])
    expect(await other.claimJob(jobId)).toEqual({ claimed: false })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', attempts: 1, lockedBy: 'another' })
  })

  test('a claim that is rolled back leaves the job to the next one, with all its attempts', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const before = await tableRows(bed)
    const held = await bed.hold(claiming())
    await held.rollback()
    expect(await tableRows(bed)).toEqual(before)
    expect((await other.claimJob(jobId)).claimed).toBe(true)
  })

  test('claims that run at once share out the jobs: each goes to one of them', async () => {
    const answers = await bed.engine.submitMany(
      work,
      Array.from({ length: 60 }, () => ({ payload: {} })),
    )
    const byId = answers.map((answer) => (answer.submitted ? answer.jobId : ''))
    const claims = await Promise.all([
      ...Array.from({ length: 6 }, (_, nth) => (nth % 2 === 0 ? other : bed.engine).claim({ limit: 7 })),
      ...byId.slice(0, 20).map(async (jobId) => {
        const answer = await other.claimJob(jobId)
        return answer.claimed ? [answer.attempt] : []
      }),
    ])
    const attempts = claims.flat()
    expect(new Set(attempts.map(({ jobId }) => jobId)).size).toBe(attempts.length)
    const left = await bed.engine.claim({ limit: 100 })
    expect(attempts.length + left.length).toBe(60)
    expect(await bed.query('select from fencepost.live_jobs where attempts <> 1')).toEqual([])
  })

  test('a batch takes what another claim has left, in order', async () => {
    const jobIds: string[] = []
    for (let n = 0; n < 4; n += 1) jobIds.push(await submitted(bed.engine.submit(work, { n })))
    const held = await bed.hold(claiming(2))
    expect(held.value.map(({ jobId }) => jobId)).toEqual(jobIds.slice(0, 2))
    const rest = await other.claim({ limit: 10 })
    expect(rest.map(({ jobId }) => jobId)).toEqual(jobIds.slice(2))
    await held.rollback()
    expect((await other.claim({ limit: 10 })).map(({ jobId }) => jobId)).toEqual(jobIds.slice(0, 2))
  })

  test('a job that was claimed and given back in between is claimed under a fence of its own', async () => {
    await submitted(bed.engine.submit(work, {}))
    const first = await claimOne(bed.engine)
    await bed.engine.release(first, 'going away')
    const second = await claimOne(bed.engine)
    expect(second.jobId).toBe(first.jobId)
    expect(second.attemptId).not.toBe(first.attemptId)
  })
})
