import { grouped } from './screen.ts'
import { killedWorker } from './scenes/killed-worker.ts'
import { onePipeline } from './scenes/one-pipeline.ts'
import { stuckJob } from './scenes/stuck-job.ts'
import { twoOperators } from './scenes/two-operators.ts'
import { openWorld, type WorldOptions } from './world.ts'

/** In production this is 30 minutes, the engine's default. Here somebody is waiting. */
const staleMs = 2_500
/** As above: fast enough to wait for, slow enough to see. */
const loadingSeconds = 1

/** All scenes, one after another, on one database. */
export async function tour(options: Omit<WorldOptions, 'staleMs'>): Promise<void> {
  const { screen } = options
  const startedAt = performance.now()
  screen.say(`A year of a university, ${grouped(options.rows)} activities, becomes a carbon report. Ctrl-C stops it.`)
  screen.say(options.database === undefined ? 'Starting Postgres …' : 'Connecting to Postgres …')
  const world = await openWorld({ ...options, staleMs })
  try {
    const worker = world.worker('carbon-1', options.rows / loadingSeconds)
    await onePipeline(world)
    await twoOperators(world)
    await worker.stop()
    await killedWorker(world) // whoever finds the job of the killed one works on
    await stuckJob(world)
  } finally {
    await world.close()
  }
  screen.say(`\nDone in ${((performance.now() - startedAt) / 1000).toFixed(0)} s.`)
}
