import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { claimOne, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import type { Engine } from '../engine.ts'
import { PermanentError } from '../errors.ts'
import type { JobFilter } from '../read/filter.ts'
import type { Act } from './bulk-act.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const pending = (count: number) =>
  bed.engine.submitMany(
    work,
    Array.from({ length: count }, () => ({ payload: {} })),
  )
const statuses = async () => {
  const rows = await bed.query<{ status: string; count: number }>(
    'select status, count(*)::integer as count from fencepost.jobs where deleted_at is null group by 1 order by 1',
  )
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
}

async function fail(): Promise<string> {
  const attempt = await claimOne(bed.engine)
  await bed.engine.fail(attempt, new PermanentError('never'))
  return attempt.jobId
}

async function perform(act: Act, filter: JobFilter, engine: Engine = bed.engine) {
  const { token, count } = await engine.bulkActs.preview(act, filter, { by: 'ada' })
  const started = await engine.bulkActs.start(token)
  if (!started.started) throw new Error(started.why)
  await engine.bulkActs.resume()
  return { count, bulkAct: await engine.bulkActs.get(started.bulkAct.bulkActId) }
}

test('a preview counts and shows what the act would be done to, and changes nothing', async () => {
  await pending(12)
  const failed = await fail()
  const preview = await bed.engine.bulkActs.preview('cancel', {})
  expect(preview).toMatchObject({ act: 'cancel', count: 11 })
  expect(preview.sample).toHaveLength(10)
  expect(preview.sample.map(({ jobId }) => jobId)).not.toContain(failed)
  expect(await bed.engine.bulkActs.preview('cancel', { status: 'failed' })).toMatchObject({ count: 0, sample: [] })
  expect(await statuses()).toEqual({ failed: 1, pending: 11 })
  expect(await bed.engine.bulkActs.get(preview.token)).toBeUndefined()
})

test('an act is done to all jobs of the filter, in batches, and to no others', async () => {
  await pending(250)
  const kept = await submitted(bed.engine.submit(work, {}, { queue: 'other' }))
  const { count, bulkAct } = await perform('cancel', { queue: 'default' })
  expect(count).toBe(250)
  expect(bulkAct).toMatchObject({ state: 'completed', done: 250, refused: 0, submittedBy: 'ada', previewedCount: 250 })
  expect(await statuses()).toEqual({ cancelled: 250, pending: 1 })
  expect((await bed.engine.events(kept)).map(({ event }) => event)).toEqual(['job.submitted'])
  expect((await perform('run_again', { status: 'cancelled' })).bulkAct).toMatchObject({ done: 250 })
  expect(await statuses()).toEqual({ cancelled: 250, pending: 251 })
  expect((await perform('delete', { status: 'cancelled' })).bulkAct).toMatchObject({ done: 250 })
  expect(await statuses()).toEqual({ pending: 251 })
})

test('jobs that were run again are not run again by a filter: the newer ones stand for them', async () => {
  await pending(2)
  const [one, two] = [await fail(), await fail()]
  await bed.engine.runAgain(one)
  const newer = await fail()
  expect((await perform('run_again', { status: 'failed' })).count).toBe(2)
  expect((await bed.engine.get(two))?.runAgainAs).toBeDefined()
  expect((await bed.engine.get(one))?.runAgainAs).toBe(newer)
  expect((await bed.engine.get(newer))?.runAgainAs).toBeDefined()
})

test('a job whose lock is held is counted as refused, and the others are run again', async () => {
  await bed.engine.submit(work, {}, { lockKey: 'a' })
  await bed.engine.submit(work, {}, { lockKey: 'b' })
  await fail()
  await fail()
  await bed.engine.submit(work, {}, { lockKey: 'a' })
  expect((await perform('run_again', {})).bulkAct).toMatchObject({ state: 'completed', done: 1, refused: 1 })
})

test('a token is good for a minute, for one act, and unknown ones start nothing', async () => {
  await pending(3)
  const { token } = await bed.engine.bulkActs.preview('cancel', {})
  await bed.advance(60_001)
  expect(await bed.engine.bulkActs.start(token)).toEqual({ started: false, why: 'token_expired' })
  expect(await bed.engine.bulkActs.start('0'.repeat(32))).toEqual({ started: false, why: 'token_unknown' })
  expect(await statuses()).toEqual({ pending: 3 })
  const fresh = await bed.engine.bulkActs.preview('cancel', {})
  const first = await bed.engine.bulkActs.start(fresh.token)
  await bed.engine.bulkActs.resume()
  await pending(1)
  const second = await bed.engine.bulkActs.start(fresh.token)
  expect(first.started && second.started && second.bulkAct.bulkActId).toBe(fresh.token)
  expect(await statuses()).toEqual({ cancelled: 3, pending: 1 })
})

test('a set that has grown by more than a tenth is refused, and one that has grown by less is not', async () => {
  await pending(24)
  for (let nth = 0; nth < 10; nth += 1) await fail()
  const ten = await bed.engine.bulkActs.preview('delete', { status: 'failed' })
  await fail()
  await fail()
  expect(await bed.engine.bulkActs.start(ten.token)).toEqual({ started: false, why: 'grown', previewed: 10, count: 12 })
  const twelve = await bed.engine.bulkActs.preview('delete', { status: 'failed' })
  await fail()
  expect(await bed.engine.bulkActs.start(twelve.token)).toMatchObject({ started: true })
  await bed.engine.bulkActs.resume()
  expect(await statuses()).toEqual({ pending: 11 })
})

test('jobs that are submitted after the preview are left out', async () => {
  await pending(2)
  const { token } = await bed.engine.bulkActs.preview('cancel', {})
  await bed.advance(5_000)
  await pending(5)
  expect(await bed.engine.bulkActs.start(token)).toMatchObject({ started: true })
  await bed.engine.bulkActs.resume()
  expect(await statuses()).toEqual({ cancelled: 2, pending: 5 })
})

test('a process that dies between two batches leaves the rest to another, and no job is counted twice', async () => {
  await pending(250)
  let notes = 0
  const dying = await bed.open(
    {},
    {
      pausePoint: async ({ statement }) => {
        if (statement === 'bulk.note' && (notes += 1) >= 2) throw new Error('the process has died')
      },
    },
  )
  const { bulkAct } = await perform('cancel', {}, dying)
  expect(bulkAct).toMatchObject({ state: 'running', done: 100 })
  expect(await statuses()).toEqual({ cancelled: 100, pending: 150 })
  await bed.engine.bulkActs.run()
  expect(await bed.engine.bulkActs.get(bulkAct?.bulkActId ?? '')).toMatchObject({
    state: 'completed',
    done: 250,
    refused: 0,
  })
  expect(await statuses()).toEqual({ cancelled: 250 })
})

test('drain holds an act that runs jobs again, and it goes on afterwards', async () => {
  await pending(1)
  await fail()
  await bed.engine.setDrain('submissions')
  const { bulkAct } = await perform('run_again', {})
  expect(bulkAct).toMatchObject({ state: 'running', done: 0 })
  await bed.engine.setDrain('off')
  await bed.engine.bulkActs.run()
  expect(await bed.engine.bulkActs.list()).toMatchObject([{ state: 'completed', done: 1 }])
})

test('an act that is stopped goes no further', async () => {
  await pending(1)
  await fail()
  await bed.engine.setDrain('submissions')
  const { bulkAct } = await perform('run_again', {})
  expect(await bed.engine.bulkActs.stop(bulkAct?.bulkActId ?? '')).toBe(true)
  expect(await bed.engine.bulkActs.stop(bulkAct?.bulkActId ?? '')).toBe(false)
  await bed.engine.setDrain('off')
  await bed.engine.bulkActs.run()
  expect(await bed.engine.bulkActs.list()).toMatchObject([{ state: 'stopped', done: 0 }])
})
