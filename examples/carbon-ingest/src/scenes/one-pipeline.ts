import { randomUUID } from 'node:crypto'
import { csvIngest } from '../csv-ingest.ts'
import { factorIngest } from '../factor-ingest.ts'
import { sampleYear } from '../sample.ts'
import { showReport } from '../show-report.ts'
import { factorFiles, type World } from '../world.ts'

/** Factors and activities are ingested side by side; one report comes out. */
export async function onePipeline(world: World): Promise<void> {
  const { engine, screen, activities } = world
  const { factors } = factorFiles
  screen.title('1. One pipeline, from two files to one report')
  const pipelineId = randomUUID()
  await engine.submit(factorIngest, { year: sampleYear, method: 'csv', source: factors }, { pipelineId })
  await engine.submit(csvIngest, { year: sampleYear, ...activities }, { pipelineId })
  const jobs = await world.follow(pipelineId)
  const count = (operation: string) => jobs.filter((job) => job.operation === operation).length
  screen.say(
    `\n  ${count('emission_recalc')} recalculations each asked for an aggregation; ${count('aggregation')} was run, after the last of them.`,
  )
  const [report] = await world.reports()
  if (report !== undefined) showReport(screen, report, { activities: activities.file, factors })
}
