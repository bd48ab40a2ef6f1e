import { afterAll, beforeAll, expect, test } from 'vitest'
import { relationsOf } from '../src/database/relations.ts'
import type { Sql } from '../src/database/sql.ts'
import { pageStatement } from '../src/read/list.ts'
import { statesStatement } from '../src/read/pipeline.ts'
import { openBed, type Bed } from './bed.ts'

// What it takes to show one page of a pipeline that is most of the table.
const jobs = 30_000
const pipelineId = '5'.repeat(32)
const db = { t: relationsOf('fencepost') }

let bed: Bed
beforeAll(async () => {
  bed = await openBed()
  await bed.query(
    `insert into fencepost.finished_jobs (job_id, operation, queue, payload, status, priority, run_after, attempts,
                                          max_attempts, submitted_at, completed_at, submitted_event_id, pipeline_id,
                                          error, error_code)
     select fencepost.new_job_id(now() - interval '1 day', nth), 'work', 'default', '{}', 'failed', 0, now(), 1, 3,
            now(), now(), nth, $1, 'it failed', 'failed'
       from generate_series(1, ${jobs}) nth`,
    [pipelineId],
  )
  await bed.query('analyze fencepost.finished_jobs')
})
afterAll(() => bed.close())

async function blocksOf({ text, values }: Sql): Promise<number> {
  const [row] = await bed.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, format json) ${text}`,
    [...values],
  )
  const { 'Shared Hit Blocks': hit = 0, 'Shared Read Blocks': read = 0 } = row?.['QUERY PLAN'][0].Plan ?? {}
  return hit + read
}

test('the status of a large pipeline is known from a few pages', async () => {
  expect(await bed.engine.pipelinePage(pipelineId, { limit: 1, maxBytes: 1_000_000 })).toMatchObject({
    status: 'failed',
    next: expect.any(String),
  })
  expect(await blocksOf(statesStatement(db, pipelineId))).toBeLessThan(100)
})

test('a page in the middle of a large pipeline is read without those before it', async () => {
  const [middle] = await bed.query<{ job_id: string }>(
    `select job_id from fencepost.finished_jobs order by job_id offset ${jobs / 2} limit 1`,
  )
  const options = { pipelineId, oldestFirst: true, limit: 50, maxBytes: 1_000_000, after: middle?.job_id ?? '' }
  expect(await blocksOf(pageStatement(db, options))).toBeLessThan(500)
})
