// @ts-check
// Breaks the code on purpose, in every way that scripts/mutants/ names, and runs the tests that must notice.
// Fails if a mutant survives.
//   node scripts/mutants.mjs                    all mutants
//   node scripts/mutants.mjs <part of a name>   only some
//   node scripts/mutants.mjs --check            only compares the mutants with the sources they change
//   node scripts/mutants.mjs --by               also prints the test that killed each mutant without a `by`
//   node scripts/mutants.mjs --tests-passed     does not run the unmutated tests first: they have just passed elsewhere
// Ends with one line: `mutants: N killed, M survived`.
import { fork } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openEmbeddedPostgres } from '@fencepost/engine'
import { loadMutants, mutate } from './mutants/load.mjs'

/**
 * @typedef {import('./mutants/mutant.ts').Mutant} Mutant
 * @typedef {import('./mutants/lane.mjs').Order} Order
 * @typedef {import('./mutants/lane.mjs').Verdict} Verdict
 * @typedef {{ run(order: Order): Promise<Verdict>, close(): Promise<unknown> }} Lane
 */

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { by: { type: 'boolean' }, check: { type: 'boolean' }, 'tests-passed': { type: 'boolean' } },
})
const wanted = (await loadMutants()).filter(({ name }) => name.includes(positionals[0] ?? ''))
if (wanted.length === 0) throw new Error(`No mutant is called ${positionals[0]}; scripts/mutants/ has their names.`)
await checkSources(wanted)
if (!flags.check) await runAll(wanted)

/**
 * A mutant whose text or tests are gone would otherwise be noticed only after minutes.
 * @param {Mutant[]} mutants
 */
async function checkSources(mutants) {
  const names = mutants.map(({ name }) => name)
  const twice = names.filter((name, index) => names.indexOf(name) !== index)
  if (twice.length > 0) throw new Error(`Two mutants are called ${twice.join(' and ')}`)
  const gone = []
  for (const mutant of mutants) {
    try {
      mutate(mutant, await source(mutant.file))
      for (const test of mutant.tests) await source(test)
    } catch (error) {
      gone.push(error instanceof Error ? error.message : String(error))
    }
  }
  if (gone.length > 0) throw new Error(gone.join('\n'))
}

/** @param {string} path */
function source(path) {
  return readFile(new URL(`../${path}`, import.meta.url), 'utf8')
}

/** @param {Mutant[]} mutants */
async function runAll(mutants) {
  const server = await openEmbeddedPostgres({ temporary: true, durable: false, settings: { max_connections: 300 } })
  /** @type {Lane[]} */
  const lanes = []
  try {
    // A lane mostly computes, and sometimes waits for a timeout: as many as a small machine has cores.
    lanes.push(...(await Promise.all([openLane(server.url), openLane(server.url)])))
    if (!flags['tests-passed'] && !(await unmutatedPass(lanes, mutants))) {
      console.error('The tests fail without any mutant: nothing can be said about the mutants.')
      process.exitCode = 1
      return
    }
    const survived = await killAll(lanes, mutants)
    console.log(`mutants: ${mutants.length - survived} killed, ${survived} survived`)
    if (survived > 0) process.exitCode = 1
  } finally {
    await Promise.all(lanes.map((lane) => lane.close()))
    await server.close()
  }
}

/**
 * @param {Lane[]} lanes
 * @param {Mutant[]} mutants
 */
async function unmutatedPass(lanes, mutants) {
  const files = new Set(mutants.flatMap(({ tests }) => tests))
  const orders = [...files].map((file) => {
    const names = mutants.filter(({ tests }) => tests.includes(file)).map(({ by }) => by)
    return { name: '', tests: [file], by: names.flatMap((by) => by ?? []), whole: names.includes(undefined) }
  })
  let pass = true
  await share(lanes, orders, async (lane, { whole, ...order }) => {
    const { failed, errors } = await lane.run(whole ? { ...order, by: [] } : order)
    for (const reason of [...failed, ...errors])
      console.error(`FAILED without a mutant: ${order.tests.join()}: ${reason}`)
    if (failed.length + errors.length > 0) pass = false
  })
  return pass
}

/**
 * Returns how many survived.
 * @param {Lane[]} lanes
 * @param {Mutant[]} mutants
 */
async function killAll(lanes, mutants) {
  let survived = 0
  await share(lanes, mutants, async (lane, { name, tests, by }) => {
    const { failed, errors, ms } = await lane.run({ name, tests, by: by === undefined ? [] : [by] })
    const killed = failed.length > 0
    if (!killed) survived += 1
    console.log(`${killed ? 'killed  ' : 'SURVIVED'} ${(ms / 1000).toFixed(1).padStart(5)} s  ${name}`)
    // Killed means that a test failed; a mutant that cannot even be loaded proves nothing.
    if (!killed) for (const error of errors) console.log(`    no test failed, but: ${error}`)
    if (flags.by && by === undefined) for (const test of failed) console.log(`    by: '${test}'`)
  })
  return survived
}

/**
 * Each lane takes the next of the items when it has done the one before.
 * @template Item
 * @param {Lane[]} lanes
 * @param {Item[]} items
 * @param {(lane: Lane, item: Item) => Promise<void>} work
 */
async function share(lanes, items, work) {
  const queue = [...items]
  await Promise.all(
    lanes.map(async (lane) => {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(lane, item)
    }),
  )
}

/**
 * @param {string} url of the server whose databases the tests use
 * @returns {Promise<Lane>}
 */
async function openLane(url) {
  const program = fileURLToPath(new URL('./mutants/lane.mjs', import.meta.url))
  const child = fork(program, { env: { ...process.env, DATABASE_URL: url } })
  const answer = () =>
    new Promise((resolve, reject) => {
      const ended = () => reject(new Error('A lane of the mutants ended before it answered.'))
      child.once('exit', ended)
      child.once('message', (message) => {
        child.off('exit', ended)
        resolve(message)
      })
    })
  await answer()
  return {
    run: (order) => {
      child.send(order)
      return answer()
    },
    close: () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.disconnect()
      return ended
    },
  }
}
