// @ts-check
import { parseArgs } from 'node:util'
import { systems } from './systems.mjs'
import { sizes, workloads } from './workloads/index.mjs'

const help = `npm run bench -- [options]

  --quick             fewer rows and one run a cell, without the long workloads: within 5 minutes
  --only <a,b>        these workloads: ${workloads.map(({ name }) => name).join(', ')}
  --systems <a,b>     these systems: ${systems.map(({ name }) => name).join(', ')}
  --runs <n>          runs a cell (default ${sizes.full.runs}, ${sizes.quick.runs} with --quick)
  --add-to <file>     put what is measured into an earlier result, so that a full run can be made in parts
  --output <folder>   where the JSON and the chart go (default bench/results; with --only or --systems nowhere)
  --help              this text
`

/** What to run, or undefined when only help was asked for. */
export function readOptions(argv) {
  const { values } = parseArgs({
    args: argv,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      systems: { type: 'string' },
      runs: { type: 'string' },
      'add-to': { type: 'string' },
      output: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(help)
    return undefined
  }
  const size = values.quick ? sizes.quick : sizes.full
  const chosen = choose(workloads, values.only, 'workload')
  const runs = Number(values.runs ?? size.runs)
  if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs is ${values.runs}; give a number from 1.`)
  return {
    quick: values.quick,
    runs,
    sizes: size,
    // Asked for by name, a long one is run also in a quick bench, with fewer rows.
    workloads: chosen.filter(({ long }) => !long || !values.quick || values.only !== undefined),
    skipped: chosen.filter(({ long }) => long && values.quick && values.only === undefined),
    systems: choose(systems, values.systems, 'system'),
    partial: values.only !== undefined || values.systems !== undefined,
    addTo: values['add-to'],
    output: values.output,
  }
}

/** Those named, in the order they are kept in; all without names. */
function choose(all, names, kind) {
  if (names === undefined) return all
  const wanted = new Set(names.split(','))
  for (const name of wanted) {
    if (all.some((one) => one.name === name)) continue
    throw new Error(`There is no ${kind} ${name}; there are ${all.map((one) => one.name).join(', ')}.`)
  }
  return all.filter(({ name }) => wanted.has(name))
}
