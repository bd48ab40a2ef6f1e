import { expect, test } from 'vitest'
import { startIngest } from '../src/operator.ts'
import { activitiesOf } from '../src/world.ts'
import { aggregation, carbonBed, year } from './bed.ts'

const bedOf = carbonBed()

const aggregationJob = async (bed: ReturnType<typeof bedOf>) =>
  (await bed.engine.list({ operation: aggregation.name }))[0]

test('a worker killed while it copies leaves no row; another runs the job again, and the report is written once', async () => {
  const bed = bedOf()
  const activities = activitiesOf(20_000)
  const doomed = bed.worker('doomed', 12_000)
  await bed.ingested()
  const before = (await bed.reports()).length
  const started = await startIngest(bed.engine, { year, ...activities }, 'ada')
  if (!started.started) throw new Error(started.message)
  await bed.until(started.jobId, ({ progress }) => (progress?.current ?? 0) > 3_000)
  await doomed.kill()
  expect(await bed.engine.get(started.jobId)).toMatchObject({ status: 'running', attempts: 1 })
  bed.worker('next')
  await bed.follow(started.pipelineId)
  expect(await bed.engine.get(started.jobId)).toMatchObject({ status: 'completed', attempts: 2 })
  const events = (await bed.engine.events(started.jobId)).map(({ event }) => event)
  expect(events).toEqual([
    'job.submitted',
    'job.started',
    'job.expired',
    'job.started',
    ...Array.from({ length: 6 }, () => 'job.chained'),
    'job.completed',
  ])
  expect(await bed.reports()).toHaveLength(before + 1)
  await bed.expectReport(activities)
})

test('a worker killed after it wrote the report and before the commit has written none', async () => {
  const bed = bedOf()
  const lines = await bed.hold('lock table carbon.report_lines in share row exclusive mode')
  const doomed = bed.worker('doomed')
  const ingested = bed.ingested()
  await bed.blocked('insert into carbon.report_lines')
  await doomed.kill()
  await lines.letGo()
  bed.worker('next')
  await ingested
  expect(await aggregationJob(bed)).toMatchObject({ status: 'completed', attempts: 2 })
  expect(await bed.reports()).toHaveLength(1)
  await bed.expectReport()
})

test('a worker killed while its commit is under way has written the report, and its job is not run again', async () => {
  const bed = bedOf()
  await bed.query(`
    create function wait() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock_shared(4711); return null; end $$;
    create constraint trigger wait after insert on carbon.reports deferrable initially deferred
      for each row execute function wait()`)
  const commits = await bed.hold('select pg_advisory_xact_lock(4711)')
  const doomed = bed.worker('doomed')
  const ingested = bed.ingested()
  await bed.blocked('commit')
  await doomed.kill()
  await commits.letGo()
  bed.worker('next')
  await ingested
  const job = await aggregationJob(bed)
  expect(job).toMatchObject({ status: 'completed', attempts: 1 })
  expect(await bed.reports()).toHaveLength(1)
  await bed.expectReport()
})
