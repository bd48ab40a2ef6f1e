import { startIngest } from '../operator.ts'
import { sampleRows, sampleYear } from '../sample.ts'
import { grouped } from '../screen.ts'
import { showReport } from '../show-report.ts'
import { files, type World } from '../world.ts'

const linesPerSecond = 50_000
const killAt = sampleRows * 0.4

/** A process dies in the middle of loading; another finds the job, and the report is written once. */
export async function killedWorker(world: World): Promise<void> {
  const { engine, screen } = world
  screen.title('3. A worker is killed in the middle')
  const before = (await world.reports()).length
  const doomed = world.worker('carbon-3', linesPerSecond)
  const ingest = { year: sampleYear, file: files.activities, rows: sampleRows }
  const started = await startIngest(engine, ingest, 'ada')
  if (!started.started) throw new Error(started.message)
  const job = await world.until(started.jobId, ({ progress }) => (progress?.current ?? 0) >= killAt)
  screen.jobs([job])
  await doomed.kill()
  screen.say(
    `  kill -9 ${doomed.pid}: ${doomed.name} is gone, with ${grouped(job.progress?.current ?? 0)} rows in a transaction.`,
  )
  const worker = world.worker('carbon-4')
  screen.say(`  ${worker.name} polls. It finds the job when its lease of 4 s has passed.\n`)
  await world.follow(started.pipelineId)
  await worker.stop()
  const events = await engine.events(started.jobId)
  screen.say(`\n  The job's history: ${events.map(({ event }) => event).join(' → ')}`)
  const reports = await world.reports()
  screen.say(`  Reports written: ${reports.length - before}.`)
  if (reports[0] !== undefined) showReport(screen, reports[0], files)
}
