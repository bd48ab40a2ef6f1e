// @ts-check
// Joining Parquet files by copying their column chunks, beside a bare DuckDB COPY of the same files and a plain copy of
// their bytes with fsync. Each run is a process of its own, and they take turns; the files are in the page cache.
//   npm run build && node bench/iceberg/byte-path.mjs [--files 60] [--rows 650000] [--runs 3] [--folder /a/disk]
// Ends with 1 if a bar is missed.
import { spawnSync } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'

const source = new URL('../../packages/iceberg/dist/', import.meta.url).href
const bars = { copy: 0.25, plain: 3 }

const { values } = parseArgs({
  options: {
    files: { type: 'string', default: '60' },
    rows: { type: 'string', default: '650000' },
    runs: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
    run: { type: 'string' },
    in: { type: 'string', default: '' },
  },
})

/** @typedef {{ seconds: number, cpuSeconds: number, megabytes: number }} Cost */

/** @type {Record<string, (paths: string[], output: string) => Promise<void>>} */
const ways = {
  join: (paths, output) => joined(paths, output, { readBack: true, lineage: false }),
  'join, not read back': (paths, output) => joined(paths, output, { readBack: false, lineage: false }),
  'join with row lineage': (paths, output) => joined(paths, output, { readBack: true, lineage: true }),
  'DuckDB COPY': duckDbCopy,
  'plain copy': plainCopy,
}

if (values.run !== undefined) await measure(values.run, values.in)
else await compare()

async function compare() {
  const folder = await mkdtemp(join(values.folder, 'bench-byte-path-'))
  try {
    await makeFiles(folder)
    const paths = await inputsIn(folder)
    const sizes = await Promise.all(paths.map(async (path) => (await stat(path)).size))
    for (const path of paths) await readFile(path)
    const megabytes = Math.round(sizes.reduce((sum, size) => sum + size, 0) / 1e6)
    console.log(
      `${paths.length} files of ${values.rows} rows in one row group each, ${megabytes} MB, ${values.runs} runs`,
    )
    /** @type {Record<string, Cost[]>} */
    const costs = Object.fromEntries(Object.keys(ways).map((name) => [name, []]))
    for (let run = 0; run < Number(values.runs); run += 1) {
      const names = Object.keys(ways)
      for (const name of run % 2 === 0 ? names : names.reverse()) costs[name]?.push(started(name, folder))
    }
    report(costs)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** @param {Record<string, Cost[]>} costs */
function report(costs) {
  /** @param {string} name @param {keyof Cost} of */
  const median = (name, of) => {
    const sorted = (costs[name] ?? []).map((cost) => cost[of]).sort((a, b) => a - b)
    return sorted[Math.floor(sorted.length / 2)] ?? NaN
  }
  console.table(
    Object.fromEntries(
      Object.keys(costs).map((name) => [
        name,
        {
          seconds: median(name, 'seconds').toFixed(2),
          'CPU seconds': median(name, 'cpuSeconds').toFixed(2),
          'peak MB': Math.round(median(name, 'megabytes')),
          'x DuckDB COPY': (median(name, 'seconds') / median('DuckDB COPY', 'seconds')).toFixed(2),
          'x plain copy': (median(name, 'seconds') / median('plain copy', 'seconds')).toFixed(2),
        },
      ]),
    ),
  )
  for (const [name, bar] of [
    ['DuckDB COPY', bars.copy],
    ['plain copy', bars.plain],
  ]) {
    const times = median('join', 'seconds') / median(String(name), 'seconds')
    const isMet = times <= Number(bar)
    console.log(`${isMet ? 'met' : 'MISSED'}: join takes ${times.toFixed(2)} x ${name}; at most ${bar}`)
    if (!isMet) process.exitCode = 1
  }
}

/**
 * @param {string} name
 * @param {string} folder
 * @returns {Cost}
 */
function started(name, folder) {
  const args = [fileURLToPath(import.meta.url), '--run', name, '--in', folder, '--rows', values.rows]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${name} failed: ${stderr}`)
  return JSON.parse(stdout)
}

/**
 * @param {string} name
 * @param {string} folder
 */
async function measure(name, folder) {
  const paths = await inputsIn(folder)
  const output = join(folder, 'output')
  const before = { at: performance.now(), cpu: process.cpuUsage() }
  await ways[name]?.(paths, output)
  const seconds = (performance.now() - before.at) / 1000
  const cpu = process.cpuUsage(before.cpu)
  const megabytes = process.resourceUsage().maxRSS / 1000
  await rm(output, { recursive: true })
  console.log(JSON.stringify({ seconds, cpuSeconds: (cpu.user + cpu.system) / 1e6, megabytes }))
}

/** @param {string} folder */
async function inputsIn(folder) {
  const names = await readdir(folder)
  return names.filter((name) => name.endsWith('.parquet')).map((name) => join(folder, name))
}

/**
 * @param {string[]} paths
 * @param {string} output
 * @param {{ readBack: boolean, lineage: boolean }} options
 */
async function joined(paths, output, { readBack, lineage }) {
  const { LocalStorage } = await import(`${source}storage/local-storage.js`)
  const { joinFiles } = await import(`${source}parquet/join/join-files.js`)
  const { joinable } = await import(`${source}parquet/join/joinable.js`)
  const { readWholeFooter } = await import(`${source}parquet/join/whole-footer.js`)
  const storage = new LocalStorage()
  const inputs = await Promise.all(
    paths.map(async (path, index) => {
      const size = await storage.size(path)
      const read = (/** @type {unknown} */ range) => storage.read(path, range)
      const footer = await readWholeFooter({ location: path, size, read })
      const file = { recordCount: footer.rowCount, firstRowId: BigInt(index) * 10_000_000n }
      return { footer, entry: { file, sequenceNumber: BigInt(index) } }
    }),
  )
  const { sets, refused } = joinable(inputs, { lineage })
  if (sets.length !== 1 || refused.length > 0) throw new Error(`not joinable: ${refused[0]?.why}`)
  await joinFiles({ inputs: sets[0], output, storage, schema: { fields: [] }, readBack, lineage })
}

/**
 * @param {string[]} paths
 * @param {string} output
 */
async function duckDbCopy(paths, output) {
  const connection = await (await DuckDBInstance.create()).connect()
  const files = paths.map((path) => `'${path}'`).join(', ')
  await connection.run(
    `copy (select * from read_parquet([${files}])) to '${output}' (format parquet, compression zstd, row_group_size ${values.rows})`,
  )
  connection.closeSync()
}

/**
 * @param {string[]} paths
 * @param {string} output
 */
async function plainCopy(paths, output) {
  await mkdir(output)
  for (const path of paths) {
    const copy = join(output, basename(path))
    await copyFile(path, copy)
    const file = await open(copy, 'r+')
    await file.sync()
    await file.close()
  }
}

/**
 * Eleven columns of the kinds that tables have: keys, times, numbers, words that repeat, texts that do not. All files
 * are copies of one: what is measured does not depend on it.
 * @param {string} folder
 */
async function makeFiles(folder) {
  const connection = await (await DuckDBInstance.create()).connect()
  const select = `
    select n as id, (hash(n) % 1000000)::bigint as customer, timestamp '2026-01-01' + n * interval 1 second as at,
           date '2026-01-01' + (n // 86400)::integer as day, (hash(n, 1) % 1000000)::decimal(12, 2) / 100 as price,
           (hash(n, 2) % 100)::integer as quantity, ['new', 'paid', 'sent', 'lost'][(hash(n, 3) % 4 + 1)::bigint] as state,
           'item ' || hash(n, 4) % 50000 as item, (hash(n, 5) % 1000000) / 7.0 as score, n % 3 = 0 as flag,
           md5(n::varchar)[1:16] as note
      from range(${values.rows}) r (n)`
  const pathOf = (/** @type {number} */ file) => join(folder, `${String(file).padStart(3, '0')}.parquet`)
  const settings = `format parquet, compression zstd, row_group_size ${values.rows}`
  await connection.run(`copy (${select}) to '${pathOf(0)}' (${settings})`)
  connection.closeSync()
  for (let file = 1; file < Number(values.files); file += 1) await copyFile(pathOf(0), pathOf(file))
}
