import { parseArgs } from 'node:util'
import { stopOnSignals } from '@fencepost/engine'
import { tour } from './tour.ts'
import { Screen } from './screen.ts'

const help = `Ingests a year of a university's activities and computes its carbon report, on Fencepost.

Usage: npm run example:carbon [-- options]

  --database <url>  a Postgres (15 or later) to use, in which it makes the schemas carbon and fencepost;
                    left out: an embedded one, which leaves nothing behind
  --help            shows this

It takes about half a minute. Ctrl-C stops it.`

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  const options = read(args)
  if (typeof options === 'string') {
    console.error(`${options}\n\n${help}`)
    return 2
  }
  if (options.help) {
    console.log(help)
    return 0
  }
  const stop = stopOnSignals()
  try {
    await tour({ screen: new Screen(process.stdout, process.env), signal: stop.signal, database: options.database })
    return 0
  } catch (error) {
    if (!stop.signal.aborted) {
      console.error(`error: ${error instanceof Error ? error.message : String(error)}`)
      return 1
    }
    console.log('\nStopped; the workers have ended.')
    return stop.signal.reason === 'SIGINT' ? 130 : 143
  } finally {
    stop.dispose()
  }
}

function read(args: string[]): { database: string | undefined; help: boolean } | string {
  try {
    const { values } = parseArgs({
      args,
      options: { database: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    })
    return { database: values.database, help: values.help ?? false }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
