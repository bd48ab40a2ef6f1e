import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBed, submitted, work, type Bed } from '../../test/bed.ts'
import { PermanentError } from '../errors.ts'
import { operation } from '../operation.ts'
import type { SubmitOptions } from '../lifecycle/submission.ts'
import { scanRows, type JobFilter } from './filter.ts'

const other = operation('other', { payload: work.payload, run: async () => null })
class OutOfPaint extends PermanentError {
  override name = 'OutOfPaint'
}

let bed: Bed
const names = new Map<string, string>()
const times: string[] = []

async function job(
  name: string,
  end: 'completed' | 'failed' | 'cancelled' | 'running' | 'pending',
  more: SubmitOptions = {},
) {
  const jobId = await submitted(bed.engine.submit(name.startsWith('other') ? other : work, { colour: name }, more))
  names.set(jobId, name)
  if (end !== 'pending') {
    const answer = end === 'cancelled' ? undefined : await bed.engine.claimJob(jobId)
    if (answer?.claimed && end === 'completed') await bed.engine.complete(answer.attempt)
    if (answer?.claimed && end === 'failed') await bed.engine.fail(answer.attempt, new OutOfPaint('none left'))
    if (end === 'cancelled') await bed.engine.cancel(jobId)
  }
  times.push((await bed.engine.get(jobId))?.submittedAt ?? '')
  await bed.advance(60_000)
}

beforeAll(async () => {
  bed = await openBed({ operations: [work, other], workerId: 'painter' })
  await job('completed', 'completed', { tags: ['wall'] })
  await job('failed', 'failed', { lockKey: 'Table:Lake/Orders' })
  await job('cancelled', 'cancelled', { queue: 'slow' })
  await job('running', 'running')
  await job('pending', 'pending', { tags: ['wall'] })
  await job('other-pending', 'pending')
  await job('deleted', 'failed')
  for (const [jobId, name] of names) if (name === 'deleted') await bed.engine.delete(jobId)
})
afterAll(() => bed.close())

const found = async (filter: JobFilter) => (await bed.engine.list(filter)).map(({ jobId }) => names.get(jobId))

test.each<[string, () => JobFilter, string[]]>([
  ['several statuses', () => ({ status: ['failed', 'pending', 'failed'] }), ['other-pending', 'pending', 'failed']],
  ['several operations', () => ({ operation: ['other', 'nothing'] }), ['other-pending']],
  ['an error code', () => ({ errorCode: 'OutOfPaint' }), ['failed']],
  ['a worker', () => ({ workerId: 'painter' }), ['running', 'failed', 'completed']],
  ['a tag and a status', () => ({ tag: 'wall', status: ['pending', 'running'] }), ['pending']],
  ['text in the lock key', () => ({ text: 'lake/ord' }), ['failed']],
  ['text in the payload', () => ({ text: 'OTHER-' }), ['other-pending']],
  ['text that is no pattern', () => ({ text: '%' }), []],
  [
    'a time of submission',
    () => ({ submittedFrom: times[1] ?? '', submittedBefore: times[3] ?? '' }),
    ['cancelled', 'failed'],
  ],
  ['a time of completion', () => ({ completedFrom: times[1] ?? '' }), ['cancelled', 'failed']],
  ['the end of a time of completion', () => ({ completedBefore: times[2] ?? '' }), ['failed', 'completed']],
  ['a queue', () => ({ queue: 'slow' }), ['cancelled']],
])('a filter by %s returns exactly the matching jobs, newest first', async (_, filter, expected) => {
  expect(await found(filter())).toEqual(expected)
  expect(await bed.engine.count(filter())).toEqual({ count: expected.length, exact: true })
  const pages: (string | undefined)[] = []
  let after: string | undefined
  do {
    const page = await bed.engine.listPage({ ...filter(), limit: 1, maxBytes: 1_000, ...(after && { after }) })
    pages.push(...page.jobs.map(({ jobId }) => names.get(jobId)))
    after = page.next
  } while (after !== undefined)
  expect(pages).toEqual(expected)
})

test('a status that does not exist, and an empty list of them, are refused', async () => {
  const lost: string = 'lost'
  await expect(bed.engine.list({ status: ['failed', lost as 'failed'] })).rejects.toMatchObject({
    code: 'options_invalid',
  })
  await expect(bed.engine.list({ status: [] })).rejects.toMatchObject({ code: 'options_invalid' })
})

test('behind very many jobs that do not fit, a page says where to go on, and a list goes on itself', async () => {
  await bed.query(
    `insert into fencepost.finished_jobs (job_id, operation, queue, payload, status, priority, run_after, attempts,
                                          max_attempts, submitted_at, completed_at, submitted_event_id)
     select fencepost.new_job_id(fencepost.clock(), nth), 'filler', 'default', '{}', 'completed', 0, now(), 1, 3,
            fencepost.clock(), fencepost.clock(), 0
       from generate_series(1, ${scanRows} + 500) nth`,
  )
  const first = await bed.engine.listPage({ operation: 'other', maxBytes: 1_000 })
  expect(first).toMatchObject({ jobs: [], next: expect.any(String) })
  const second = await bed.engine.listPage({ operation: 'other', maxBytes: 1_000, after: first.next ?? '' })
  expect(second).toMatchObject({ jobs: [{ operation: 'other' }], next: undefined })
  expect(await found({ operation: 'other' })).toEqual(['other-pending'])
  await bed.query('analyze fencepost.finished_jobs')
  const about = await bed.engine.count({ operation: 'filler' })
  expect(about.exact).toBe(false)
  expect(about.count).toBeGreaterThan(scanRows)
  expect(await bed.engine.count({ status: 'failed' })).toEqual({ count: 1, exact: true })
})
