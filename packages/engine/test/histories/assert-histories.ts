import fc from 'fast-check'
import { vi } from 'vitest'
import { seedOfTheDay } from '../seed.ts'
import { wishes, type Weights } from './commands.ts'
import { play } from './history.ts'
import type { World } from './world.ts'

/*
 * Random histories against the real Postgres. How to run them:
 *
 *   npx vitest run packages/engine/test/histories                            100 histories, other ones every day
 *   FENCEPOST_HISTORIES=5000 npx vitest run packages/engine/test/histories   more of them
 *   FENCEPOST_SEED=7 npx vitest run packages/engine/test/histories           others
 *
 * What fails is shrunk, and printed with its seed and path. To play that history again:
 *
 *   FENCEPOST_SEED=… FENCEPOST_PATH=… npx vitest run packages/engine/test/histories/<file>
 */

const wantedHistories = Number(process.env.FENCEPOST_HISTORIES ?? 100)
const files = 2

const histories = Math.ceil(wantedHistories / files)

/** How long the histories of one test file may take, shrinking included. */
export const timeoutMs = 120_000 + histories * 1000

/** Plays random histories; throws the smallest failing one that was found. */
export async function assertHistories(world: World, options: { file: string; weights: Weights }): Promise<void> {
  const path = process.env['FENCEPOST_PATH']
  const random = vi.spyOn(Math, 'random').mockReturnValue(1) // retries wait for the whole of their delay
  let steps = 0
  const property = fc.asyncProperty(wishes(options.weights), async (history) => {
    steps += await play(world, history)
  })
  const run = await fc.check(property, {
    numRuns: histories,
    seed: seedOfTheDay(),
    ...(path !== undefined && { path }),
    plugins: [fc.interruptAfterTimeLimit(timeoutMs - 30_000, { failOnInterrupt: true })],
  })
  random.mockRestore()
  if (run.failed) {
    throw new Error(
      `${await fc.asyncDefaultReportMessage(run)}\n\nPlay it again:\n` +
        `FENCEPOST_SEED=${run.seed} FENCEPOST_PATH=${run.counterexamplePath} npx vitest run ${options.file}`,
      { cause: run.errorInstance },
    )
  }
  console.info(`${run.numRuns} histories, ${steps} steps checked (seed ${run.seed})`)
}
