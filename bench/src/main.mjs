// @ts-check
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { killAdapters } from './adapter-process.mjs'
import { Cell } from './cell.mjs'
import { chart } from './chart.mjs'
import { machine } from './machine.mjs'
import { Meeting } from './meeting.mjs'
import { readOptions } from './options.mjs'
import { openPostgres, settings } from './postgres.mjs'
import { endProgress, progress } from './progress.mjs'
import { merged, summarise } from './results.mjs'
import { table } from './table.mjs'
import { workloads } from './workloads/index.mjs'

/** @typedef {NonNullable<ReturnType<typeof readOptions>>} Options */

const options = readOptions(process.argv.slice(2))
if (options !== undefined) await bench(options)

/** @param {Options} options */
async function bench(options) {
  const on = machine()
  const earlier = options.addTo === undefined ? undefined : earlierResult(options)
  const postgres = await openPostgres()
  endOnSignal(postgres)
  try {
    const versions = { postgres: await postgres.version() }
    for (const { name, version } of options.systems) versions[name] = version
    print(`Postgres ${versions.postgres}, Node ${on.node}, ${on.cpu}, ${on.cores} cores, ${on.memoryGb} GB, ${on.os}`)
    print(options.systems.map(({ label, version }) => `${label} ${version}`).join(', '))
    await makeTemplates(postgres, options)
    const results = await runAll(postgres, options)
    endProgress()
    const rows = summarise(options.workloads, options.systems, results)
    const result = { date: new Date().toISOString(), machine: on, versions, settings, ...sizesOf(options), rows }
    const whole = { ...result, rows: earlier === undefined ? rows : merged(workloads, earlier.rows, rows) }
    report(options, whole.rows)
    save(options, whole)
  } finally {
    killAdapters()
    await postgres.close()
  }
}

/** What is added to; undefined when it is not there yet. Refused when it was not measured alike. */
function earlierResult({ addTo, runs, sizes, systems }) {
  if (!existsSync(addTo)) return undefined
  const earlier = JSON.parse(readFileSync(addTo, 'utf8'))
  const alike = (result) =>
    JSON.stringify([result.runs, result.sizes, result.systems.map(({ name, version }) => [name, version])])
  if (alike(earlier) === alike({ runs, sizes, systems })) return earlier
  throw new Error(`${addTo} was measured with other runs, sizes or systems; give another file to --add-to.`)
}

/** Each system's empty schema, made once; every cell begins as a copy of it. */
async function makeTemplates(postgres, { systems, workloads, sizes }) {
  const kinds = workloads.some(({ name }) => name === 'freeze') ? ['empty', 'short_lease'] : ['empty']
  for (const system of systems) {
    for (const kind of kinds) {
      progress(`${system.name}: schema`)
      const cell = new Cell({ postgres, system, sizes, say: () => {} })
      cell.url = await postgres.recreate(cell.template(kind))
      await cell.once('setup', {}, { options: kind === 'short_lease' ? system.shortLease : {} })
    }
  }
}

async function runAll(postgres, { systems, workloads, sizes, runs }) {
  const results = {}
  for (const [at, workload] of workloads.entries()) {
    const applicable = systems.filter((system) => workload.applies?.(system) ?? true)
    const ofWorkload = (results[workload.name] = Object.fromEntries(applicable.map(({ name }) => [name, []])))
    const cellOf = (system, nth) => {
      const where = `${at + 1}/${workloads.length} ${workload.name}, ${nth}, ${system.name}`
      const say = (text) => progress(`${where}: ${text}`)
      say(workload.title)
      return new Cell({ postgres, system, sizes, say })
    }
    const able = []
    for (const system of applicable) {
      const prepared = workload.prepare && (await attempt(cellOf(system, 'preparing'), workload.prepare))
      if (prepared?.error === undefined) able.push(system)
      else ofWorkload[system.name].push(prepared)
    }
    for (let run = 0; run < runs; run += 1) {
      // Who comes first changes from run to run, so that nobody always has the warm, or the tired, machine.
      const order = able
        .map((_, nth) => able[(nth + run) % able.length])
        .filter(({ name }) => !ofWorkload[name].some(isHopeless))
      const meeting = new Meeting(order.length)
      const measure = async (system) => {
        const cell = cellOf(system, `run ${run + 1}/${runs}`)
        ofWorkload[system.name].push(await attempt(cell, (it) => workload.run(it, meeting)))
        meeting.leave()
      }
      if (workload.together) await Promise.all(order.map(measure))
      else for (const system of order) await measure(system)
    }
    if (workload.tidy) for (const system of applicable) await workload.tidy(cellOf(system, 'tidying'))
  }
  return results
}

/** A cell's values; an error is its result too, and the bench goes on. */
async function attempt(cell, work) {
  try {
    return await work(cell)
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  } finally {
    await cell.close()
  }
}

// Waiting again for what did not come, or failed, would tell nothing new.
function isHopeless(run) {
  return run.error !== undefined || Object.values(run).some((value) => value?.over !== undefined)
}

function report({ skipped, systems, quick }, rows) {
  print(`\n${table(rows, systems)}\n`)
  const failures = rows.flatMap((row) =>
    Object.entries(row.cells).flatMap(([name, cell]) =>
      cell.kind === 'failed' ? [`${row.key}, ${name}: ${cell.error}`] : [],
    ),
  )
  for (const failure of new Set(failures)) print(`failed: ${failure}`)
  for (const workload of skipped) print(`skipped in a quick run: ${workload.name} (${workload.title})`)
  if (quick) print('A quick run: fewer rows, too few runs to compare by. Without --quick it takes them seriously.')
}

function save({ addTo, output, partial, quick }, result) {
  if (output === undefined && addTo === undefined && partial) return
  const date = result.date.slice(0, 10)
  const folder =
    addTo === undefined ? (output ?? fileURLToPath(new URL('../results', import.meta.url))) : dirname(addTo)
  const json = addTo ?? join(folder, `${date}${quick ? '-quick' : ''}.json`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(json, `${JSON.stringify(result, null, 2)}\n`)
  print(`Written: ${json}`)
  if (quick && output === undefined) return
  const { cpu, cores, node } = result.machine
  const caption = `${date}, Postgres ${result.versions.postgres}, durable commits, Node ${node}, ${cores} cores, ${cpu}`
  const systems = Object.keys(result.versions).filter((name) => name !== 'postgres')
  const svg = join(folder, 'bench.svg')
  const known = result.systems.filter(({ name }) => systems.includes(name))
  writeFileSync(svg, chart(result.rows, known, caption))
  print(`Written: ${svg}`)
}

function sizesOf({ quick, runs, sizes, systems }) {
  return {
    quick,
    runs,
    sizes,
    systems: systems.map(({ name, label, version, scale }) => ({ name, label, version, scale })),
  }
}

// Ctrl-C: nothing that was started goes on.
function endOnSignal(postgres) {
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.once(signal, () => {
      endProgress()
      killAdapters()
      void postgres.close().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143))
    })
  }
}

function print(text) {
  process.stdout.write(`${text}\n`)
}
