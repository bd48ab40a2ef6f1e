// @ts-check
// Breaks the code on purpose, in every way that scripts/mutants/ names, and runs the tests that must notice.
// Fails if a mutant survives. `node scripts/mutants.mjs <part of a name>` tries only some.
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { openEmbeddedPostgres } from '@fencepost/engine'
import ts from 'typescript'

const config = fileURLToPath(new URL('./mutants/vitest.config.ts', import.meta.url))
const vitest = fileURLToPath(new URL('../node_modules/vitest/vitest.mjs', import.meta.url))

/** @typedef {{ name: string, tests: readonly string[] }} Mutant */

const all = await loadMutants()
const wanted = all.filter(({ name }) => name.includes(process.argv[2] ?? ''))
if (wanted.length === 0) throw new Error(`No mutant is called ${process.argv[2]}; scripts/mutants/ has their names.`)
// Two lanes, each with a server of its own that its runs share one after another.
const servers = await Promise.all(
  Array.from({ length: 2 }, () => openEmbeddedPostgres({ temporary: true, durable: false })),
)
/** @type {string[]} */
const survived = []
try {
  const tests = [...new Set(wanted.flatMap(({ tests }) => tests))]
  if (!(await passes({ name: '', tests }, servers[0]?.url))) {
    console.error('The tests fail without any mutant: nothing can be said about the mutants.')
    process.exitCode = 1
  } else {
    const queue = [...wanted]
    await Promise.all(servers.map(({ url }) => work(queue, url)))
    console.log(`mutants: ${wanted.length - survived.length} killed, ${survived.length} survived`)
    if (survived.length > 0) process.exitCode = 1
  }
} finally {
  await Promise.all(servers.map((server) => server.close()))
}

/**
 * @param {Mutant[]} queue
 * @param {string} url
 */
async function work(queue, url) {
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const alive = await passes(mutant, url)
    if (alive) survived.push(mutant.name)
    console.log(`${alive ? 'SURVIVED' : 'killed  '} ${mutant.name}`)
  }
}

/**
 * @param {Mutant} mutant
 * @param {string | undefined} url
 */
async function passes(mutant, url) {
  // Without a mutant all must pass: other work on the machine can make a test miss its deadline once.
  const retry = mutant.name === '' ? ['--retry=1'] : []
  const run = spawn(process.execPath, [vitest, 'run', '--config', config, ...retry, ...mutant.tests], {
    env: { ...process.env, DATABASE_URL: url, FENCEPOST_MUTANT: mutant.name },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  run.stdout.on('data', (some) => (output += some))
  run.stderr.on('data', (some) => (output += some))
  const code = await new Promise((resolve) => run.on('close', resolve))
  // Killed means that a test failed; a mutant that cannot even be loaded proves nothing.
  if (code !== 0 && !/Tests .*failed/.test(output)) throw new Error(`${mutant.name || 'no mutant'}:\n${output}`)
  if (code !== 0 && mutant.name === '') console.error(output)
  return code === 0
}

/** @returns {Promise<Mutant[]>} */
async function loadMutants() {
  const names = (await readdir(new URL('./mutants/', import.meta.url))).filter((name) => name.endsWith('-mutants.ts'))
  const lists = names.map(async (name) => {
    const source = await readFile(new URL(`./mutants/${name}`, import.meta.url), 'utf8')
    const { outputText } = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext } })
    const { mutants } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`)
    return mutants
  })
  return (await Promise.all(lists)).flat()
}
