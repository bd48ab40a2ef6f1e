import { killedWorker } from './scenes/killed-worker.ts'
import { onePipeline } from './scenes/one-pipeline.ts'
import { stuckJob } from './scenes/stuck-job.ts'
import { twoOperators } from './scenes/two-operators.ts'
import { openWorld, type WorldOptions } from './world.ts'

/** In production this is 30 minutes, the engine's default. Here somebody is waiting. */
const staleMs = 2_500

/** All scenes, one after another, on one database. */
export async function tour(options: Omit<WorldOptions, 'staleMs'>): Promise<void> {
  const { screen } = options
  const startedAt = performance.now()
  screen.say(options.database === undefined ? 'Starting Postgres …' : 'Connecting to Postgres …')
  const world = await openWorld({ ...options, staleMs })
  try {
    for (const scene of [onePipeline, twoOperators, killedWorker, stuckJob]) await scene(world)
  } finally {
    await world.close()
  }
  screen.say(`\nDone in ${((performance.now() - startedAt) / 1000).toFixed(0)} s.`)
}
