import { metrics, trace } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { openBed, submitted, type Bed } from '../test/bed.ts'
import { PermanentError } from './errors.ts'
import { operation } from './operation.ts'
import { metricNames } from './telemetry.ts'

const measured = operation('measured', {
  payload: z.object({ fail: z.boolean().optional() }),
  run: async ({ payload }) => {
    if (payload.fail) throw new PermanentError('as asked')
  },
})

const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
const spans = new InMemorySpanExporter()
const lines: Record<string, unknown>[] = []
const logger = pino({ level: 'debug' }, { write: (line: string) => lines.push(JSON.parse(line) as (typeof lines)[0]) })

let bed: Bed
beforeAll(async () => {
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }))
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }))
  bed = await openBed({ operations: [measured], logger })
})
afterAll(async () => {
  await bed.close()
  await reader.shutdown()
})

test('a program with an SDK and pino sees what its jobs do', async () => {
  const good = await submitted(bed.engine.submit(measured, {}))
  const bad = await submitted(bed.engine.submit(measured, { fail: true }))
  const controller = new AbortController()
  const worked = bed.engine.work({ signal: controller.signal })
  await expect.poll(() => bed.query('select from fencepost.finished_jobs')).toHaveLength(2)
  controller.abort()
  await worked
  await submitted(bed.engine.submit(measured, {}))
  const [stale] = await bed.engine.claim()
  await bed.advance(31_000)
  await bed.engine.sweep()
  if (stale !== undefined) await bed.engine.complete(stale)
  await bed.engine.runAgain(bad)

  await reader.forceFlush()
  const all = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
  const names = [...new Set(all.map(({ descriptor }) => descriptor.name))]
  expect(names.toSorted()).toEqual(Object.values(metricNames).toSorted())
  const settled = all.findLast(({ descriptor }) => descriptor.name === metricNames.settled)
  expect(settled?.dataPoints.map(({ attributes, value }) => ({ ...attributes, value }))).toEqual(
    expect.arrayContaining([
      { operation: 'measured', outcome: 'completed', value: 1 },
      { operation: 'measured', outcome: 'failed', value: 1 },
    ]),
  )
  const byJob = new Map(spans.getFinishedSpans().map((span) => [span.attributes['fencepost.job_id'], span]))
  expect(byJob.get(good)).toMatchObject({ name: 'run measured', attributes: { 'fencepost.outcome': 'completed' } })
  expect(byJob.get(bad)).toMatchObject({ attributes: { 'error.type': 'PermanentError' } })
  const about = (jobId: string | undefined) => lines.filter((line) => line['job_id'] === jobId)
  expect(about(good)).toMatchObject([
    { msg: 'job_started', operation: 'measured', attempt_id: expect.any(String) as string, attempt: 1 },
    { msg: 'job_settled', outcome: 'completed', settled: true },
  ])
  expect(about(bad).at(-1)).toMatchObject({ level: 40, outcome: 'failed', error_code: 'PermanentError' })
  expect(about(stale?.jobId)).toMatchObject([{ msg: 'writeback_stale_attempt', verb: 'complete' }])
})
