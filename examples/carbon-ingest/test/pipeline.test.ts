import { createReadStream } from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import { openEngine } from '@fencepost/engine'
import { describe, expect, test } from 'vitest'
import { recoverJob, startIngest } from '../src/operator.ts'
import { operations } from '../src/operations.ts'
import { sampleRows } from '../src/sample.ts'
import { activitiesOf, factorFiles } from '../src/world.ts'
import { aggregation, carbonBed, csvIngest, emissionRecalc, factorIngest, rows, year } from './bed.ts'

const bedOf = carbonBed()
const head = 'entry_id,day,org_unit,module,data_type,category,quantity'

describe('a pipeline', () => {
  test('makes one report of 100,000 activities, as an independent calculation does', async () => {
    const bed = bedOf()
    const activities = activitiesOf(sampleRows)
    const pipelineId = randomUUID()
    await bed.engine.submit(factorIngest, { year, method: 'csv', source: factorFiles.factors }, { pipelineId })
    await bed.engine.submit(csvIngest, { year, ...activities }, { pipelineId })
    bed.work()
    const jobs = await bed.follow(pipelineId)
    expect(jobs.map(({ operation, status, attempts }) => `${operation} ${status} ${attempts}`).sort()).toEqual([
      'aggregation completed 1',
      'csv_ingest completed 1',
      ...Array.from({ length: 6 }, () => 'emission_recalc completed 1'),
      'factor_ingest completed 1',
    ])
    const ingest = jobs.find(({ operation }) => operation === csvIngest.name)
    expect(ingest).toMatchObject({ result: { rows: sampleRows }, progress: { current: sampleRows, total: sampleRows } })
    await bed.expectReport(activities)
    const [report, ...others] = await bed.reports()
    expect(others).toEqual([])
    expect(report?.micrograms).toBe(22_026_487_762_166_313n) // as computed when the sample was made
  })

  test('comes to the same when the factors come last', async () => {
    const bed = bedOf()
    bed.work()
    await bed.engine.submit(csvIngest, { year, ...bed.activities })
    await bed.settled()
    expect(await bed.reports()).toEqual([])
    await bed.ingested()
    await bed.expectReport()
  })

  test('runs one aggregation, after the last recalculation, however many asked for it', async () => {
    const bed = bedOf()
    // The trains cannot be recalculated before this test lets them; everything else can.
    await bed.query('create table held (data_type text)')
    await bed.query(`
      create function wait_for_train() returns trigger language plpgsql as
      $$ begin if new.data_type = 'train' then lock table held in share mode; end if; return new; end $$;
      create trigger wait before insert on carbon.emissions for each row execute function wait_for_train()`)
    const train = await bed.hold('lock table held in access exclusive mode')
    bed.work()
    void bed.ingested()
    await expect
      .poll(async () => (await bed.engine.list({ operation: emissionRecalc.name, status: 'completed' })).length)
      .toBe(5)
    expect(await bed.reports()).toEqual([])
    await train.letGo()
    await bed.settled()
    expect([await bed.count(emissionRecalc), await bed.count(aggregation)]).toEqual([6, 1])
    await bed.expectReport()
  })

  test('that is aborted leaves no report', async () => {
    const bed = bedOf()
    const pipelineId = randomUUID()
    await bed.engine.submit(csvIngest, { year, ...bed.activities }, { pipelineId })
    expect(await bed.engine.abortPipeline(pipelineId)).toMatchObject({ aborted: true })
    bed.work()
    await bed.settled()
    expect(await bed.query('select from carbon.entries')).toEqual([])
  })

  test('changed factors that come while a report is being written are in the next one', async () => {
    const bed = bedOf()
    bed.work()
    const reading = await bed.hold('lock table carbon.report_lines in share row exclusive mode')
    void bed.ingested()
    await bed.blocked('insert into carbon.report_lines') // it has read everything
    await bed.engine.submit(factorIngest, { year, method: 'csv', source: factorFiles.revised })
    await bed.blocked('from carbon.years')
    await reading.letGo()
    await bed.settled()
    expect(await bed.reports()).toHaveLength(2)
    await bed.expectReport(bed.activities, factorFiles.revised)
  })
})

describe('a slot', () => {
  test('five operators who start the same ingest at once get one run and four conflicts', async () => {
    const bed = bedOf()
    const operators = ['ada', 'ben', 'cyd', 'dan', 'eve']
    const engines = await Promise.all(
      operators.map(() => openEngine({ database: bed.url, operations, migrate: false })),
    )
    const ingest = { year, ...bed.activities }
    const answers = await Promise.all(engines.map((engine, nth) => startIngest(engine, ingest, operators[nth] ?? '')))
    await Promise.all(engines.map((engine) => engine.close()))
    const started = answers.flatMap((answer, nth) => (answer.started ? [{ ...answer, by: operators[nth] }] : []))
    const refused = answers.flatMap((answer) => (answer.started ? [] : [answer.message]))
    expect(started).toHaveLength(1)
    const [{ jobId, by } = { jobId: '', by: '' }] = started
    expect(refused).toEqual(
      Array.from(
        { length: 4 },
        () =>
          `activities-2025.csv was not started: job ${jobId}, started by ${by} and pending, is doing the same. ` +
          'Wait for it, or cancel it.',
      ),
    )
    bed.work()
    await bed.ingested()
    expect((await bed.engine.events(jobId)).filter(({ event }) => event === 'job.started')).toHaveLength(1)
  })

  test('another file for it waits for its turn, and is then the current one', async () => {
    const bed = bedOf()
    bed.work()
    await bed.ingested()
    const year1 = await bed.hold('select from carbon.years for update')
    const first = await startIngest(bed.engine, { year, ...bed.activities }, 'ada')
    if (!first.started) throw new Error(first.message)
    await bed.blocked('from carbon.years')
    const second = await startIngest(bed.engine, { year, ...bed.corrected }, 'ben')
    if (!second.started) throw new Error(second.message)
    expect(await bed.engine.explain(second.jobId)).toMatchObject({
      reasons: [{ reason: 'slot_busy', slotKey: '*/*/entries/csv/2025', jobId: first.jobId }],
    })
    await year1.letGo()
    await bed.settled()
    expect(await bed.engine.get(first.jobId)).toMatchObject({ status: 'completed', isCurrent: false })
    expect(await bed.engine.get(second.jobId)).toMatchObject({ status: 'completed', isCurrent: true })
    await bed.expectReport(bed.corrected)
  })

  test('a file for another year does not wait', async () => {
    const bed = bedOf()
    const file = bed.file('2024.csv', `${head}\n1,2024-02-29,law,travel,car,petrol,10.5\n`)
    const held = await bed.hold(`insert into carbon.years values (${year})`)
    bed.work()
    await bed.engine.submit(csvIngest, { year, ...bed.activities })
    await bed.blocked('into carbon.years')
    const other = await startIngest(bed.engine, { year: 2024, file }, 'ada')
    const { attempts } = await bed.until(other.started ? other.jobId : '', ({ status }) => status === 'completed')
    expect(attempts).toBe(1)
    const ingesting = await bed.engine.list({ status: 'running', operation: csvIngest.name })
    expect(ingesting).toMatchObject([{ payload: { year } }])
    await held.letGo()
    await bed.settled()
  })
})

describe('recover', () => {
  test('is refused while a claim is fresh; a stuck job is put back, and its first attempt changes nothing', async () => {
    const bed = bedOf()
    let requests = 0
    const server = createServer((_, response) => {
      requests += 1
      if (requests > 1) createReadStream(factorFiles.revised).pipe(response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    bed.work()
    await bed.ingested()
    const source = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const answer = await bed.engine.submit(factorIngest, { year, method: 'api', source })
    const jobId = answer.submitted ? answer.jobId : ''
    await once(server, 'request')
    const refused = await recoverJob(bed.engine, jobId, 'ada')
    expect(refused).toEqual({
      recovered: false,
      message: expect.stringMatching(/is not put back: it was claimed at 2.*Z/),
    })
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'running', attempts: 1 })
    await expect.poll(() => recoverJob(bed.engine, jobId, 'ada'), { timeout: 5_000 }).toMatchObject({ recovered: true })
    await bed.settled()
    server.close()
    expect(requests).toBe(2)
    const events = (await bed.engine.events(jobId)).map(({ event }) => event)
    expect(events).toEqual(expect.arrayContaining(['job.recovered', 'job.fence_rejected', 'job.completed']))
    expect(await bed.engine.get(jobId)).toMatchObject({ status: 'completed', attempts: 1 })
    expect(await bed.reports()).toHaveLength(2)
    await bed.expectReport(bed.activities, factorFiles.revised)
    expect(await recoverJob(bed.engine, jobId, 'ada')).toMatchObject({
      message: expect.stringMatching(/it is completed/),
    })
    expect(await recoverJob(bed.engine, '0'.repeat(32), 'ada')).toMatchObject({
      message: expect.stringMatching(/there is no such job/),
    })
  })
})

describe('what cannot be ingested fails at once, says why, and changes nothing', () => {
  const line = '1,2025-02-28,law,travel,car,petrol,10.5'
  test.each([
    ['another year', `${head}\n${line}\n2,2024-12-31,law,travel,car,petrol,1\n`, /entry 2 is of 2024-12-31/],
    ['a word for a number', `${head}\n${line.replace('10.5', 'many')}\n`, /line 2, column quantity: "many"/],
    ['another head', `id,day\n${line}\n`, /column name mismatch|wrong number of fields/],
    ['a line too short', `${head}\n${line}\n2,2025-01-01\n`, /missing data for column "org_unit".*line 3/],
  ])('%s', async (_, text, error) => {
    const bed = bedOf()
    bed.work()
    await bed.ingested()
    const answer = await startIngest(bed.engine, { year, file: bed.file('bad.csv', text) }, 'ada')
    const jobId = answer.started ? answer.jobId : ''
    await bed.settled()
    const job = await bed.engine.get(jobId)
    expect(job).toMatchObject({ status: 'failed', errorCode: 'PermanentError', attempts: 1 })
    expect(job?.error).toMatch(error)
    expect(await bed.query('select count(*)::int as n from carbon.entries')).toEqual([{ n: rows }])
    expect(await bed.reports()).toHaveLength(1)
  })

  test('a file that is not there', async () => {
    const bed = bedOf()
    bed.work()
    const answer = await startIngest(bed.engine, { year, file: '/no/such/file.csv' }, 'ada')
    await bed.settled()
    const job = await bed.engine.get(answer.started ? answer.jobId : '')
    expect(job).toMatchObject({ status: 'failed', error: 'There is no file /no/such/file.csv to ingest.' })
  })

  test('a category without a factor fails its data type, and leaves the pipeline partial', async () => {
    const bed = bedOf()
    bed.work()
    await bed.ingested()
    const text = `${head}\n1,2025-02-28,law,travel,car,steam,10.5\n2,2025-02-28,law,travel,train,regional,1\n`
    const answer = await startIngest(bed.engine, { year, file: bed.file('steam.csv', text) }, 'ada')
    await bed.settled()
    const pipeline = await bed.engine.pipeline(answer.started ? answer.pipelineId : '')
    expect(pipeline?.status).toBe('partial')
    expect(pipeline?.jobs.filter(({ status }) => status === 'failed')).toMatchObject([
      { operation: 'emission_recalc', error: expect.stringMatching(/^No factor for travel\/car in 2025: steam\./) },
    ])
  })
})
