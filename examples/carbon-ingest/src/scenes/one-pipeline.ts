import { randomUUID } from 'node:crypto'
import { csvIngest } from '../csv-ingest.ts'
import { factorIngest } from '../factor-ingest.ts'
import { sampleRows, sampleYear } from '../sample.ts'
import { showReport } from '../show-report.ts'
import { files, type World } from '../world.ts'

/** Factors and activities are ingested side by side; one report comes out. */
export async function onePipeline(world: World): Promise<void> {
  const { engine, screen } = world
  screen.title('1. One pipeline, from two files to one report')
  const worker = world.worker('carbon-1')
  const pipelineId = randomUUID()
  const rows = sampleRows
  await engine.submit(factorIngest, { year: sampleYear, method: 'csv', source: files.factors }, { pipelineId })
  await engine.submit(csvIngest, { year: sampleYear, file: files.activities, rows }, { pipelineId })
  const jobs = await world.follow(pipelineId)
  const count = (operation: string) => jobs.filter((job) => job.operation === operation).length
  screen.say(
    `\n  ${count('emission_recalc')} recalculations each asked for an aggregation; ${count('aggregation')} was run, after the last of them.`,
  )
  await worker.stop()
  const [report] = await world.reports()
  if (report !== undefined) showReport(screen, report, files)
}
