import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Attempt } from '../attempt/attempt.ts'
import { claimOne, openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { listStatement } from './list.ts'

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
})
beforeEach(() => bed.reset())
afterAll(() => bed.close())

const odd = 'a "quoted", {braced} \\ tag'

test('a job keeps its tags, sorted and each once, from submission to its end', async () => {
  const jobId = await submitted(bed.engine.submit(work, {}, { tags: ['night', odd, 'night'] }))
  expect((await bed.engine.get(jobId))?.tags).toEqual([odd, 'night'])
  await bed.engine.complete(await claimOne(bed.engine), null)
  expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', tags: [odd, 'night'] })
})

test('a failed, a cancelled and a retried job keep their tags', async () => {
  const tags = ['kept']
  const ids = await Promise.all([0, 1, 2].map(() => submitted(bed.engine.submit(work, {}, { tags, maxAttempts: 2 }))))
  const [first, second] = (await bed.engine.claim({ limit: 2 })) as [Attempt, Attempt]
  await bed.engine.settle(first, { kind: 'failed', error: 'x', errorCode: 'x', permanent: true, steps: [] })
  await bed.engine.fail(second, new Error('again'))
  await bed.engine.cancel(ids[2] as string)
  const jobs = [...(await bed.engine.getMany(ids)).values()]
  expect(jobs.map((job) => job.status).sort()).toEqual(['cancelled', 'failed', 'pending'])
  expect(jobs.map((job) => job.tags)).toEqual([tags, tags, tags])
})

test('jobs submitted together, in a caller’s transaction or by a chain have their own tags', async () => {
  const { engine } = bed
  const together = await engine.submitMany(work, [
    { payload: {}, options: { tags: ['one'] } },
    { payload: {}, options: { tags: ['one', 'two'] } },
    { payload: {} },
  ])
  const ids = together.flatMap((answer) => (answer.submitted ? answer.jobId : []))
  const own = await engine.database.clientTransaction('test', async (_db, client) =>
    submitted(engine.submit(work, {}, { tags: ['own'], client })),
  )
  expect((await engine.get(own))?.tags).toEqual(['own'])
  const found = await engine.getMany(ids)
  expect(ids.map((jobId) => found.get(jobId)?.tags)).toEqual([['one'], ['one', 'two'], []])
  for (const keys of [{}, { dedupKey: 'd' }]) {
    const attempt = await claimOne(engine)
    attempt.chain(work, {}, { tags: ['chained'], ...keys })
    await engine.complete(attempt, null)
  }
  expect(await engine.list({ tag: 'chained' })).toHaveLength(2)
})

test('the filter finds exactly the jobs with the tag, unfinished and finished', async () => {
  const { engine } = bed
  const ended = await submitted(engine.submit(work, {}, { tags: ['night', 'eu'] }))
  await engine.complete(await claimOne(engine), null)
  const waiting = await submitted(engine.submit(work, {}, { tags: ['night'] }))
  await submitted(engine.submit(work, {}, { tags: ['nigh', 'night-shift'] }))
  await submitted(engine.submit(work, {}))
  expect((await engine.list({ tag: 'night' })).map(({ jobId }) => jobId)).toEqual([waiting, ended])
  expect((await engine.list({ tag: 'night', status: 'completed' })).map(({ jobId }) => jobId)).toEqual([ended])
})

test('the filter reads the index of tags', async () => {
  await bed.query(`insert into fencepost.live_jobs (job_id, operation, queue, payload, priority, run_after, max_attempts,
                                                    submitted_at, tags)
                   select fencepost.new_job_id(now(), nth), 'work', 'default', '{}', 0, now(), 3, now(),
                          case when nth % 1000 = 0 then array['rare'] when nth % 2 = 0 then array['common'] end
                     from generate_series(1, 20000) nth`)
  await bed.query('analyze fencepost.live_jobs; analyze fencepost.finished_jobs')
  const { text, values } = listStatement(bed.database, { tag: 'rare' })
  const rows = await bed.query<Record<string, string>>(`explain ${text}`, values as unknown[])
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  expect(plan).toContain('live_jobs_tags')
  expect(plan).not.toContain('Seq Scan on live_jobs')
})

test.each([
  ['too many', Array.from({ length: 21 }, (_, nth) => `t${nth}`)],
  ['an empty one', ['']],
  ['one that is too long', ['x'.repeat(101)]],
  ['one with a null character', ['a\u0000']],
])('tags are refused: %s', async (_, tags) => {
  await expect(bed.engine.submit(work, {}, { tags })).rejects.toMatchObject({ code: 'key_invalid' })
})
