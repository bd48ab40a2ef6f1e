// @ts-check
// The maintenance actions beside warm Spark, a bare DuckDB COPY and a plain copy with fsync, on the same tables and disk.
//   npm run bench:iceberg -- [--quick] [--only d,f] [--folder /a/disk]
// Prints a table with bars met or missed. --quick: a tenth of the size, one run.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { installed } from '../../scripts/interop/install.mjs'
import { casesOf } from './cases.mjs'
import { openCatalog } from './tables.mjs'

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
  },
})
/** @typedef {{ seconds: number, megabytes: number, wall?: number, done?: unknown }} Cost */

const here = fileURLToPath(new URL('.', import.meta.url))
const runs = values.quick ? 1 : 3
for (const [part, path] of /** @type {const} */ ([
  ['python', installed.python],
  ['spark', installed.sparkJars],
])) {
  if (existsSync(path)) continue
  console.error(`Spark is not installed. Run this first: node scripts/interop/install.mjs ${part}`)
  process.exit(1)
}

const folder = mkdtempSync(join(values.folder, 'bench-iceberg-'))
let hasMissed = false
try {
  const warehouse = join(folder, 'w')
  await openCatalog(warehouse).createNamespace(['db'])
  const spark = await startSpark(warehouse)
  console.log(`${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, median of ${runs}`)
  console.log('case | what | ours s (MB) | Spark s (MB) | times as fast | others | bars')
  for (const [name, each] of Object.entries(casesOf(values.quick))) {
    if (values.only !== undefined && !values.only.split(',').includes(name)) continue
    await measure(name, each, warehouse, spark)
  }
  await spark.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
if (hasMissed) process.exitCode = 1

/**
 * @param {string} name
 * @param {import('./cases.mjs').Case} each
 * @param {string} warehouse
 * @param {Awaited<ReturnType<typeof startSpark>>} spark
 */
async function measure(name, each, warehouse, spark) {
  const live = join(warehouse, 'db/t')
  const backup = join(folder, 'backup')
  rmSync(live, { recursive: true, force: true })
  await each.make(warehouse, 't')
  execute('mv', [live, backup])
  // Links are enough: files of a table are never changed, only replaced.
  const restore = () => {
    rmSync(live, { recursive: true, force: true })
    execute('cp', ['-al', backup, live])
  }
  const proof = each.bars?.count === undefined ? ['checksum'] : ['checksum', 'count']
  const data = join(backup, 'data')
  /** @type {Record<string, Cost[]>} */
  const costs = {}
  const statement = `call w.system.${each.action}(table => 'db.t'${each.options === '' ? '' : `, ${each.options}`})`
  restore()
  await spark.run(statement)
  for (let run = 0; run < runs; run += 1) {
    for (const how of proof) {
      restore()
      ;(costs[`ours, ${how}`] ??= []).push(node('ours.mjs', [warehouse, 't', each.action, how]))
    }
    restore()
    ;(costs['Spark'] ??= []).push(await spark.run(statement))
    for (const way of each.bars === undefined ? [] : ['copy', 'plain']) {
      const output = join(folder, 'bare')
      ;(costs[way] ??= []).push(node('bare.mjs', [way, data, output]))
      rmSync(output, { recursive: true })
    }
  }
  rmSync(backup, { recursive: true })
  report(name, each, costs, spark.startSeconds)
}

/**
 * @param {string} name
 * @param {import('./cases.mjs').Case} each
 * @param {Record<string, Cost[]>} costs
 * @param {number} startSeconds
 */
function report(name, each, costs, startSeconds) {
  const ours = median(costs['ours, checksum'])
  const spark = median(costs['Spark'])
  const [copy, plain, count] = ['copy', 'plain', 'ours, count'].map((way) => costs[way] && median(costs[way]))
  const bars = each.bars ?? {}
  /** @type {[what: string, is: number, bar: number, atLeast: boolean][]} */
  const checks = [
    ['Spark', spark.seconds / ours.seconds, each.spark, true],
    ['memory', ours.megabytes / spark.megabytes, 0.25, false],
  ]
  if (copy !== undefined && bars.checksum !== undefined)
    checks.push(['COPY', ours.seconds / copy.seconds, bars.checksum, false])
  if (copy !== undefined && count !== undefined && bars.count !== undefined)
    checks.push(['COPY, count', count.seconds / copy.seconds, bars.count, false])
  if (plain !== undefined && bars.plain !== undefined)
    checks.push(['plain copy', ours.seconds / plain.seconds, bars.plain, false])
  if (bars.start !== undefined)
    checks.push(['from start', (startSeconds + spark.seconds) / (ours.wall ?? 0), bars.start, true])
  const said = checks.map(([what, is, bar, atLeast]) => {
    const isMet = atLeast ? is >= bar : is <= bar
    hasMissed ||= !isMet
    return `${what} ${is.toFixed(2)} ${atLeast ? '≥' : '≤'} ${bar} ${isMet ? 'met' : 'MISSED'}`
  })
  const cost = (/** @type {Cost} */ { seconds, megabytes }) => `${seconds.toFixed(2)} (${megabytes.toFixed(0)})`
  const others = [copy && `COPY ${cost(copy)}`, plain && `plain ${cost(plain)}`].filter((text) => text !== undefined)
  const faster = (spark.seconds / ours.seconds).toFixed(1)
  console.log([name, each.says, cost(ours), cost(spark), faster, others.join(', '), said.join('; ')].join(' | '))
}

/**
 * @param {Cost[] | undefined} costs
 * @returns {Cost}
 */
function median(costs = []) {
  const inOrder = costs.toSorted((a, b) => a.seconds - b.seconds)
  const middle = inOrder[Math.floor(inOrder.length / 2)] ?? { seconds: 0, megabytes: 0 }
  return { ...middle, megabytes: Math.max(...costs.map(({ megabytes }) => megabytes)) }
}

/**
 * A program of this folder, in a process of its own.
 * @param {string} program
 * @param {string[]} args
 * @returns {Cost}
 */
function node(program, args) {
  const begun = performance.now()
  const output = execute(process.execPath, [join(here, program), ...args])
  return { ...JSON.parse(output), wall: (performance.now() - begun) / 1000 }
}

/**
 * @param {string} command
 * @param {string[]} args
 */
function execute(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${stderr}`)
  return stdout
}

/**
 * One warm Spark on two cores, for all cases.
 * @param {string} warehouse
 */
async function startSpark(warehouse) {
  const begun = performance.now()
  const child = spawn(installed.python, [join(here, 'spark.py'), warehouse], { stdio: ['pipe', 'pipe', 'ignore'] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async () => {
    const { value, done } = await lines.next()
    if (done === true) throw new Error('Spark has ended')
    const parsed = JSON.parse(value)
    if (parsed.error !== undefined) throw new Error(`Spark failed: ${parsed.error}`)
    return parsed
  }
  await answer()
  const startSeconds = (performance.now() - begun) / 1000
  return {
    startSeconds,
    /**
     * @param {string} statement
     * @returns {Promise<Cost>}
     */
    run: async (statement) => {
      child.stdin.write(`${JSON.stringify({ statement })}\n`)
      return await answer()
    },
    close: async () => {
      child.stdin.end()
      await new Promise((resolve) => child.on('close', resolve))
    },
  }
}
