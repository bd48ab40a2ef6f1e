// @ts-check
// Planning a scan of a large table: every file with the deletes that apply to it, and those that a filter leaves. Ours
// and PyIceberg's, in turns, each in a process of its own, on the same table on the local disk.
//   npm run bench:iceberg-read -- [--files 100000] [--manifests 1000] [--runs 3]
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { installed } from '../../scripts/interop/install.mjs'
import { makeTable } from './make-table.mjs'

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '100000' },
    manifests: { type: 'string', default: '1000' },
    runs: { type: 'string', default: '3' },
  },
})
const here = fileURLToPath(new URL('.', import.meta.url))
/** @type {Record<string, readonly [string, ...string[]]>} */
const planners = {
  Fencepost: [process.execPath, join(here, 'plan.mjs')],
  PyIceberg: [installed.python, join(here, 'plan.py')],
}

if (!existsSync(installed.python)) {
  console.error('PyIceberg is not installed. Run this first: node scripts/interop/install.mjs python')
  process.exit(1)
}
const folder = mkdtempSync(join(tmpdir(), 'bench-iceberg-read-'))
try {
  const metadata = await makeTable(folder, Number(values.files), Number(values.manifests))
  console.log(`${values.files} files in ${values.manifests} manifests, ${values.runs} runs, median (lowest to highest)`)
  for (const scan of ['all', 'filtered']) {
    /** @type {Record<string, { seconds: number; megabytes: number; files: number }[]>} */
    const results = { Fencepost: [], PyIceberg: [] }
    for (let run = 0; run < Number(values.runs); run += 1) {
      const names = run % 2 === 0 ? ['Fencepost', 'PyIceberg'] : ['PyIceberg', 'Fencepost']
      for (const name of names) results[name]?.push(plan(name, metadata, scan))
    }
    const counts = new Set(Object.values(results).flatMap((runs) => runs.map(({ files }) => files)))
    if (counts.size !== 1) throw new Error(`They planned different numbers of files: ${[...counts].join(', ')}`)
    report(scan, results)
  }
} finally {
  rmSync(folder, { recursive: true })
}

/**
 * @param {string} name
 * @param {string} metadata
 * @param {string} scan
 * @returns {{ seconds: number; megabytes: number; files: number }}
 */
function plan(name, metadata, scan) {
  const [command, ...args] = planners[name] ?? ['']
  const { status, stdout, stderr } = spawnSync(command, [...args, metadata, scan], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${name} failed: ${stderr}`)
  return JSON.parse(stdout)
}

/**
 * @param {string} scan
 * @param {Record<string, { seconds: number; megabytes: number; files: number }[]>} results
 */
function report(scan, results) {
  const medians = Object.fromEntries(
    Object.entries(results).map(([name, runs]) => {
      const seconds = runs.map((run) => run.seconds).toSorted((a, b) => a - b)
      const median = seconds[Math.floor(seconds.length / 2)] ?? 0
      const memory = Math.max(...runs.map(({ megabytes }) => megabytes))
      const spread = `(${seconds[0]?.toFixed(2)} to ${seconds.at(-1)?.toFixed(2)})`
      console.log(
        `${scan}: ${name} ${median.toFixed(2)} s ${spread}, ${memory.toFixed(0)} MB at most, ${runs[0]?.files} files`,
      )
      return [name, median]
    }),
  )
  console.log(`${scan}: ${((medians['PyIceberg'] ?? 0) / (medians['Fencepost'] ?? 1)).toFixed(1)} times as fast`)
}
