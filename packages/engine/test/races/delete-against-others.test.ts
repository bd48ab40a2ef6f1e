import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Engine } from '../../src/engine.ts'
import { deleteJob } from '../../src/lifecycle/delete.ts'
import { claimOne, Gate, openBed, submitted, work, type Bed } from '../bed.ts'
import { completing, recovering } from './uncommitted.ts'

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

const deletions = async (jobId: string) =>
  bed.query(`select from fencepost.job_events where job_id = $1 and event = 'job.deleted'`, [jobId])

describe('delete against cancel', () => {
  test('a cancel that is not committed leaves the job unfinished, and it is not deleted', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const stop = gate.stopAt('cancel.commit')
    const cancelled = slow.cancel(jobId)
    await stop.reached
    expect(await other.delete(jobId)).toEqual({ deleted: false, why: 'unfinished', status: 'pending' })
    stop.go()
    await cancelled
    expect(await other.delete(jobId)).toEqual({ deleted: true })
    expect(await other.get(jobId)).toBeUndefined()
  })

  test('a job that is cancelled while a delete looks why it failed is deleted, not unknown', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    const stop = gate.stopAt('delete.why')
    const deleted = slow.delete(jobId)
    await stop.reached
    await other.cancel(jobId)
    stop.go()
    expect(await deleted).toEqual({ deleted: true })
    expect(await deletions(jobId)).toHaveLength(1)
  })

  test('a deleted job is unknown to a cancel', async () => {
    const jobId = await submitted(bed.engine.submit(work, {}))
    await other.cancel(jobId)
    await other.delete(jobId)
    expect(await other.cancel(jobId)).toEqual({ cancelled: false, why: 'not_found' })
  })
})

describe('delete against recover', () => {
  async function stuck() {
    await submitted(bed.engine.submit(work, {}))
    const attempt = await claimOne(bed.engine)
    await bed.advance(3_600_000)
    return attempt
  }

  test('a recovery that is not committed leaves the job running, one that is leaves it pending: neither is deleted', async () => {
    const { jobId } = await stuck()
    const held = await bed.hold(recovering(jobId, 1_800_000))
    expect(await other.delete(jobId)).toEqual({ deleted: false, why: 'unfinished', status: 'running' })
    await held.commit()
    expect(await other.delete(jobId)).toEqual({ deleted: false, why: 'unfinished', status: 'pending' })
  })

  test('a recovery finds nothing of a job that was completed and deleted while it waited', async () => {
    const attempt = await stuck()
    const held = await bed.hold(async (db) => {
      await completing(attempt)(db)
      return deleteJob(db, attempt.jobId, undefined)
    })
    const late = other.recover(attempt.jobId)
    await bed.blocked()
    await held.commit()
    expect(await late).toEqual({ recovered: false, why: 'not_found' })
    expect(await bed.query('select from fencepost.live_jobs')).toEqual([])
  })

  test('a recovery of a job that is being deleted is told what the job is', async () => {
    const attempt = await stuck()
    await bed.engine.complete(attempt)
    const held = await bed.hold((db) => deleteJob(db, attempt.jobId, undefined))
    expect(await other.recover(attempt.jobId)).toMatchObject({ why: 'not_running', status: 'completed' })
    await held.commit()
    expect(await other.recover(attempt.jobId)).toEqual({ recovered: false, why: 'not_found' })
  })
})

test('of two deletes one does it, and the other waits and is told that there is no such job', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}))
  await other.cancel(jobId)
  const held = await bed.hold((db) => deleteJob(db, jobId, undefined))
  const late = other.delete(jobId)
  await bed.blocked()
  await held.commit()
  expect(held.value).toEqual({ deleted: true })
  expect(await late).toEqual({ deleted: false, why: 'not_found' })
  expect(await deletions(jobId)).toHaveLength(1)
})
