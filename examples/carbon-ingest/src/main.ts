import { parseArgs } from 'node:util'
import { stopOnSignals } from '@fencepost/engine'
import { sampleRows } from './sample.ts'
import { grouped, Screen } from './screen.ts'
import { tour } from './tour.ts'

const leastRows = 1_000
const mostRows = 1_000_000

const help = `Ingests a year of a university's activities and computes its carbon report, on Fencepost.

Usage: npm run example:carbon [-- options]

  --rows <number>   how many activities the year has, 1,000 to 1,000,000; 100,000 when left out
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
    await tour({ screen: new Screen(process.stdout, process.env), signal: stop.signal, ...options })
    return 0
  } catch (error) {
    if (stop.signal.aborted) {
      console.log('\nStopped. Its workers have ended.')
      return stop.signal.reason === 'SIGINT' ? 130 : 143
    }
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  } finally {
    stop.dispose()
  }
}

interface Options {
  database: string | undefined
  rows: number
  help: boolean
}

/** The options, or what is wrong with them. */
function read(args: string[]): Options | string {
  try {
    const { values } = parseArgs({
      args,
      options: { database: { type: 'string' }, rows: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    })
    const rows = Number(values.rows ?? sampleRows)
    if (!Number.isInteger(rows) || rows < leastRows || rows > mostRows) {
      return `--rows is ${values.rows}; give a whole number from ${grouped(leastRows)} to ${grouped(mostRows)}.`
    }
    return { database: values.database, rows, help: values.help ?? false }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
