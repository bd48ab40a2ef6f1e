import type { JobEvent } from '@fencepost/engine'
import { leaseMs } from '../queue.ts'
import { startIngest } from '../operator.ts'
import { sampleYear } from '../sample.ts'
import { grouped } from '../screen.ts'
import { showReport } from '../show-report.ts'
import { factorFiles, type World } from '../world.ts'

const loadingSeconds = 2
const killAfter = 0.4 // of the rows

/** A process dies in the middle of loading; another finds the job, and the report is written once. */
export async function killedWorker(world: World): Promise<void> {
  const { engine, screen, activities } = world
  screen.title('3. A worker is killed in the middle')
  const before = (await world.reports()).length
  const doomed = world.worker('carbon-2', activities.rows / loadingSeconds)
  const started = await startIngest(engine, { year: sampleYear, ...activities }, 'ada')
  if (!started.started) throw new Error(started.message)
  const job = await world.until(
    started.jobId,
    ({ progress }) => (progress?.current ?? 0) >= activities.rows * killAfter,
  )
  screen.jobs([job], true)
  await doomed.kill()
  screen.say(
    `  kill -9 ${doomed.pid}: ${doomed.name} is gone, with ${grouped(job.progress?.current ?? 0)} rows in a transaction, which Postgres takes back.`,
  )
  const worker = world.worker('carbon-3')
  screen.say(`  ${worker.name} polls. It finds the job when its lease of ${leaseMs / 1000} s has passed.\n`)
  await world.follow(started.pipelineId)
  const events = await engine.events(started.jobId)
  screen.say(`\n  The job's history: ${historyOf(events)}`)
  const reports = await world.reports()
  screen.say(`  Reports written: ${reports.length - before}.`)
  if (reports[0] !== undefined) showReport(screen, reports[0], { ...factorFiles, activities: activities.file })
}

/** The names of events, each once where it is repeated. */
function historyOf(events: readonly JobEvent[]): string {
  const names = events.map(({ event }) => event)
  return names.filter((name, nth) => name !== names[nth - 1]).join(' → ')
}
