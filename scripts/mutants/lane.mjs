// @ts-check
// One lane of scripts/mutants.mjs: a process that keeps one Vitest warm and runs the tests of one mutant after another.
// Only the mutated file is transformed again; nothing on disk is touched. The parent sends names and reads verdicts.
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createVitest } from 'vitest/node'
import { loadMutants, mutate } from './load.mjs'

/**
 * @typedef {import('./mutant.ts').Mutant} Mutant
 * @typedef {{ name: string, tests: readonly string[], by: readonly string[] }} Order the mutant, '' for none;
 *   the test files; parts of the names of the tests to run, none for all
 * @typedef {{ failed: string[], errors: string[], ms: number }} Verdict the tests that failed; what failed outside of any
 */

const root = fileURLToPath(new URL('../..', import.meta.url))
const mutants = await loadMutants()
/** @type {Mutant | undefined} */
let current

const vitest = await createVitest(
  'test',
  { root, watch: false, reporters: [{}], bail: 1, retry: 0, maxWorkers: 1, testTimeout: 15_000, hookTimeout: 30_000 },
  { plugins: [{ name: 'mutant', enforce: 'pre', transform: (code, id) => broken(code, id) }] },
)
// The template database is made by the code as it is.
await vitest.collectTests([])
process.on('message', (/** @type {Order} */ order) => {
  void run(order).then((verdict) => process.send?.(verdict))
})
process.on('disconnect', () => void vitest.close().then(() => process.exit()))
process.send?.('ready')

/**
 * @param {string} code
 * @param {string} id
 */
function broken(code, id) {
  if (current === undefined || !id.endsWith(current.file)) return undefined
  return { code: mutate(current, code), map: null }
}

/**
 * @param {Order} order
 * @returns {Promise<Verdict>}
 */
async function run({ name, tests, by }) {
  const since = performance.now()
  current = mutants.find((mutant) => mutant.name === name)
  // Read by tests that start processes of their own.
  process.env['FENCEPOST_MUTANT'] = name
  const changed = current && resolve(root, current.file)
  if (changed !== undefined) vitest.invalidateFile(changed)
  const options = by.length === 0 ? {} : { testNamePattern: new RegExp(by.map(literally).join('|')) }
  const project = vitest.getRootProject()
  const specifications = tests.map((test) => project.createSpecification(resolve(root, test), options))
  const { unhandledErrors } = await vitest.runTestSpecifications(specifications)
  if (changed !== undefined) vitest.invalidateFile(changed)
  const modules = specifications.flatMap(({ testModule }) => testModule ?? [])
  const all = modules.flatMap(({ children }) => [...children.allTests()])
  const suites = modules.flatMap((module) => [module, ...module.children.allSuites()])
  const ran = all.some((test) => ['passed', 'failed'].includes(test.result().state))
  return {
    failed: all.filter((test) => test.result().state === 'failed').map(({ fullName }) => fullName),
    errors: [
      ...suites.flatMap((suite) => suite.errors().map(({ message }) => message)),
      ...unhandledErrors.map((error) => (error instanceof Error ? error.message : JSON.stringify(error))),
      ...(ran ? [] : [`no test was run in ${tests.join(', ')}`]),
    ],
    ms: performance.now() - since,
  }
}

/**
 * A pattern for part of a full name, whose suites Vitest joins by a space when it looks for it.
 * @param {string} text
 */
function literally(text) {
  return text.replaceAll(' > ', ' ').replace(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`)
}
