// @ts-check
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chart } from './chart.mjs'
import { writeTable } from './readme.mjs'

const ownFolder = fileURLToPath(new URL('../results', import.meta.url))

/** Writes the result and what is drawn from it; the paths. A run of parts is not kept unless told where. */
export function save({ addTo, output, partial, quick }, result) {
  if (output === undefined && addTo === undefined && partial) return []
  const folder = resolve(addTo === undefined ? (output ?? ownFolder) : dirname(addTo))
  const json = addTo ?? join(folder, `${result.date.slice(0, 10)}${quick ? '-quick' : ''}.json`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(json, `${JSON.stringify(result, null, 2)}\n`)
  // What is shown to readers is a full run.
  if (quick && folder === ownFolder) return [json]
  const svg = join(folder, 'bench.svg')
  writeFileSync(svg, chart(result.rows, result.systems, captions(result)))
  return folder === ownFolder ? [json, svg, writeTable(json)] : [json, svg]
}

function captions({ date, machine, versions }) {
  const { cpu, cores, node } = machine
  return [
    `${date.slice(0, 10)}, Postgres ${versions.postgres}, Node ${node}, ${cores} cores, ${cpu}`,
    "Commits are durable; Fencepost's claims of jobs without lock and slot do not wait for the disk.",
  ]
}
