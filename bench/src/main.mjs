// @ts-check
import { killAdapters } from './adapter-process.mjs'
import { earlierAlike } from './earlier.mjs'
import { load, machine } from './machine.mjs'
import { readOptions } from './options.mjs'
import { openPostgres, settings } from './postgres.mjs'
import { endProgress } from './progress.mjs'
import { endRefused } from './refusal.mjs'
import { merged, summarise } from './results.mjs'
import { makeTemplates, runAll } from './run.mjs'
import { save } from './save.mjs'
import { source } from './source.mjs'
import { systems as allSystems } from './systems.mjs'
import { textTable } from './table.mjs'
import { workloads as allWorkloads } from './workloads/index.mjs'

/** Above it, something else has a part of the processors. */
const quietLoad = 0.5

await bench(readOptions(process.argv.slice(2))).catch(endRefused)

/** @param {import('./options.mjs').Options} options */
async function bench(options) {
  const { runs, sizes, quick } = options
  const workloads = allWorkloads.filter(({ name }) => options.workloads.includes(name))
  const systems = allSystems.filter(({ name, variantOf }) => options.systems.includes(variantOf ?? name))
  const shown = systems.filter(({ variantOf }) => variantOf === undefined)
  if (load() > quietLoad) warn(`The load of this machine is ${load()}: what is measured now is not worth much.`)
  if (options.drainAdded) warn('Some of these are compared with our own drain, so drain is measured too.')
  const postgres = await openPostgres()
  endOnSignal(postgres)
  try {
    const { commit, dirty, engine } = source()
    const begun = {
      date: new Date().toISOString(),
      machine: machine(),
      versions: { postgres: await postgres.version() },
      settings,
      engine,
      quick,
      runs,
      sizes,
      systems: shown.map(({ name, label, version, scale }) => ({ name, label, version, scale })),
    }
    const earlier = options.addTo === undefined ? undefined : earlierAlike(options.addTo, begun)
    introduce(begun)
    await makeTemplates(postgres, { systems, workloads, sizes })
    const { results, circumstances } = await runAll(postgres, { systems, workloads, sizes, runs })
    endProgress()
    const rows = summarise(workloads, shown, results)
    const alike = { commit, dirty, engine, node: begun.machine.node, postgres: begun.versions.postgres }
    const measured = Object.fromEntries(
      Object.entries(circumstances).map(([workload, its]) => [workload, { ...its, ...alike }]),
    )
    const result = {
      ...begun,
      measured: { ...earlier?.measured, ...measured },
      rows: earlier === undefined ? rows : merged(allWorkloads, earlier.rows, rows),
    }
    report(options, result)
    for (const path of save(options, result)) print(`Written: ${path}`)
  } finally {
    killAdapters()
    await postgres.close()
  }
}

function introduce({ machine: { node, cpu, cores, memoryGb, os }, versions, systems }) {
  print(`Postgres ${versions.postgres}, Node ${node}, ${cpu}, ${cores} cores, ${memoryGb} GB, ${os}`)
  print(systems.map(({ label, version }) => `${label} ${version}`).join(', '))
}

function report({ leftOut }, { rows, systems, quick }) {
  print(`\n${textTable(rows, systems)}\n`)
  const failures = rows.flatMap((row) =>
    Object.entries(row.cells).flatMap(([name, cell]) =>
      cell.kind === 'failed' ? [`${row.key}, ${name}: ${cell.error}`] : [],
    ),
  )
  for (const failure of failures) print(`failed: ${failure}`)
  for (const workload of leftOut) print(`left out of a quick run: ${workload}`)
  if (quick) print('A quick run: fewer rows, too few runs to compare by. Without --quick it takes them seriously.')
}

// Ctrl-C: nothing that was started goes on. It may come twice, from the terminal and from the process that started us.
function endOnSignal(postgres) {
  let ending = false
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => {
      if (ending) return
      ending = true
      endProgress()
      killAdapters()
      void postgres.close().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143))
    })
  }
}

function print(text) {
  process.stdout.write(`${text}\n`)
}

function warn(text) {
  process.stderr.write(`${text}\n`)
}
