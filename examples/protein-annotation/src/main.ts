import { parseArgs } from 'node:util'
import { openEmbeddedPostgres, openEngine, stopOnSignals } from '@fencepost/engine'
import { createTables, openPool } from './database.ts'
import { annotationOperations } from './operations/operations.ts'
import { scenes } from './scenes/scenes.ts'
import type { Scene, Stage } from './scenes/stage.ts'
import { Screen } from './show/screen.ts'
import { View } from './show/view.ts'
import { Workers } from './workers.ts'

const help = `Annotates a sample of proteins, and shows what happens when things go wrong.

  npm run example:protein -- [options]

  --scene <name>   Play this scene only; can be given several times.
  --workers <n>    How many worker processes, at least 2. Default 2.
  --plain          Lines only, no drawing: the default where output is not a terminal.
  --help           Show this.

Scenes:
${scenes.map(({ name, title }) => `  ${name.padEnd(10)} ${title}`).join('\n')}

It starts a Postgres of its own, which is gone when it ends. Ctrl-C stops it.
`

interface Options {
  scenes: readonly Scene[]
  workers: number
  plain: boolean
}

function readOptions(): Options | 'help' {
  const { values } = parseArgs({
    options: {
      scene: { type: 'string', multiple: true },
      workers: { type: 'string', default: '2' },
      plain: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return 'help'
  const workers = Number(values.workers)
  if (!Number.isInteger(workers) || workers < 2 || workers > 16) {
    throw new Error(`--workers is ${values.workers}; give a whole number from 2 to 16.`)
  }
  const wanted = values.scene?.map((name) => {
    const found = scenes.find((scene) => scene.name === name)
    if (found === undefined) {
      throw new Error(`There is no scene ${name}; there are ${scenes.map((scene) => scene.name).join(', ')}.`)
    }
    return found
  })
  return { scenes: wanted ?? scenes, workers, plain: values.plain }
}

/** Plays the scenes, and says whether everything held that should. */
async function show(options: Options, signal: AbortSignal): Promise<boolean> {
  const screen = new Screen(process.stdout, { plain: options.plain, env: process.env })
  const began = performance.now()
  screen.update(['Starting Postgres and the workers …'], [])
  const postgres = await openEmbeddedPostgres({ temporary: true, durable: false })
  const pool = openPool(postgres.url)
  const operations = annotationOperations(pool)
  const engine = await openEngine({ database: postgres.url, operations: Object.values(operations) })
  const workers = new Workers(postgres.url)
  try {
    await createTables(pool)
    for (let nth = 0; nth < options.workers; nth += 1) workers.start()
    const stage: Stage = { engine, pool, operations, workers, view: new View(engine, screen), signal }
    let allHold = true
    for (const scene of options.scenes) allHold = (await playScene(scene, stage, screen)) && allHold
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    screen.update(['', allHold ? `All of it holds. (${seconds} s)` : 'Something does not hold: see the ✗ above.'], [])
    return allHold
  } finally {
    await workers.stop()
    await engine.close()
    await pool.end()
    await postgres.close()
  }
}

async function playScene(scene: Scene, stage: Stage, screen: Screen): Promise<boolean> {
  stage.signal.throwIfAborted()
  screen.update(
    ['', screen.style('bold', `━━ ${scene.title} (${scene.name})`), screen.style('dim', scene.about), ''],
    [],
  )
  const findings = await scene.play(stage)
  const marked = findings.map(({ holds, text }) =>
    holds ? `${screen.style('green', '✓')} ${text}` : `${screen.style('red', '✗')} ${text}`,
  )
  screen.update(['', ...marked], [])
  return findings.every(({ holds }) => holds)
}

async function main(): Promise<number> {
  let options: Options | 'help'
  try {
    options = readOptions()
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)} --help tells more.\n`)
    return 2
  }
  if (options === 'help') {
    process.stdout.write(help)
    return 0
  }
  const stop = stopOnSignals()
  try {
    return (await show(options, stop.signal)) ? 0 : 1
  } catch (error) {
    if (!stop.signal.aborted) throw error
    process.stdout.write('\nStopped.\n')
    return 130
  } finally {
    stop.dispose()
  }
}

process.exitCode = await main()
