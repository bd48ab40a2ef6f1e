// @ts-check
import { parseArgs } from 'node:util'
import { readResult } from './earlier.mjs'
import { comparedWithDrain, longWorkloads, systemNames, workloadNames } from './names.mjs'
import { Refusal } from './refusal.mjs'
import { sizes } from './sizes.mjs'

export const help = `npm run bench -- [options]

  --quick             fewer rows and one run a cell, without the long workloads: within 5 minutes
  --only <a,b>        these workloads: ${workloadNames.join(', ')}
  --systems <a,b>     these systems: ${systemNames.join(', ')}
  --runs <n>          runs a cell (default ${sizes.full.runs}, ${sizes.quick.runs} with --quick)
  --add-to <file>     put what is measured into an earlier result, so that a full run can be made in parts
  --output <folder>   where the JSON and the chart go (default bench/results; with --only or --systems nowhere)
  --table <file>      measure nothing; write the table of bench/README.md from a result
  --help              this text
`

/** @typedef {ReturnType<typeof readOptions>} Options */

/** What to do, checked; throws a Refusal. */
export function readOptions(argv) {
  const values = parsed(argv)
  if (values.table !== undefined && Object.keys(values).length > 1) {
    throw new Refusal('--table goes with no other option.')
  }
  if (values['add-to'] !== undefined && values.output !== undefined) {
    throw new Refusal('--add-to and --output: give one of the two; what is added goes where the file is.')
  }
  const quick = values.quick ?? false
  const size = quick ? sizes.quick : sizes.full
  const chosen = choose(workloadNames, values.only, 'workload')
  const systems = choose(systemNames, values.systems, 'system')
  const drainAdded = systems.includes('fencepost') && lacksDrain(chosen, values['add-to'])
  if (drainAdded) chosen.unshift('drain')
  const isLeftOut = (name) => quick && values.only === undefined && longWorkloads.includes(name)
  return {
    help: values.help ?? false,
    table: values.table,
    quick,
    runs: runsOf(values.runs, size.runs),
    sizes: size,
    workloads: chosen.filter((name) => !isLeftOut(name)),
    leftOut: chosen.filter(isLeftOut),
    drainAdded,
    systems,
    partial: values.only !== undefined || values.systems !== undefined,
    addTo: values['add-to'],
    output: values.output,
  }
}

function parsed(argv) {
  try {
    return parseArgs({
      args: argv,
      options: {
        quick: { type: 'boolean' },
        only: { type: 'string' },
        systems: { type: 'string' },
        runs: { type: 'string' },
        'add-to': { type: 'string' },
        output: { type: 'string' },
        table: { type: 'string' },
        help: { type: 'boolean' },
      },
    }).values
  } catch (error) {
    // Node's messages go on with advice about positional arguments, of which there are none here.
    const [line = ''] = (error instanceof Error ? error.message : String(error)).split(/\n|\. /)
    throw new Refusal(`${line.replace(/\.$/, '')}.`, { cause: error })
  }
}

function runsOf(given, usual) {
  const runs = Number(given ?? usual)
  if (Number.isInteger(runs) && runs >= 1) return runs
  throw new Refusal(`--runs is '${given}'; give a whole number from 1.`)
}

/** Those named, in the order they are kept in; all without names. */
function choose(all, names, kind) {
  if (names === undefined) return [...all]
  const wanted = new Set(names.split(','))
  for (const name of wanted) {
    if (!all.includes(name)) throw new Refusal(`There is no ${kind} '${name}'; there are ${all.join(', ')}.`)
  }
  return all.filter((name) => wanted.has(name))
}

function lacksDrain(chosen, addTo) {
  if (chosen.includes('drain') || !chosen.some((name) => comparedWithDrain.includes(name))) return false
  const earlier = addTo === undefined ? undefined : readResult(addTo)
  return !earlier?.rows.some(({ key, cells }) => key === 'drain' && cells.fencepost?.kind === 'measured')
}
