// @ts-check
// What Fencepost says to others is checked with the others: HTTP with schemathesis, Iceberg with Spark, PyIceberg, a REST
// catalog server and an S3 server that are not ours. Installs them the first time; what cannot be installed has failed.
//   node scripts/interop.mjs            all of it
//   node scripts/interop.mjs iceberg    only this part
// Ends with one line: `interop: N passed, N failed`.
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { install } from './interop/install.mjs'

/** @typedef {{ passed: number, failed: number }} Counts */

/** @type {Record<string, () => Promise<Counts>>} */
const parts = { http, iceberg }
const named = process.argv[2]
const total = { passed: 0, failed: 0 }
for (const [name, run] of Object.entries(parts)) {
  if (named !== undefined && named !== name) continue
  const counts = await run()
  total.passed += counts.passed
  total.failed += counts.failed
}
console.log(`interop: ${total.passed} passed, ${total.failed} failed`)
if (total.failed > 0 || total.passed === 0) process.exitCode = 1

async function http() {
  const { code, output } = await node(['scripts/interop/http.mjs'])
  const [, passed = '0', failed = '0'] = /^interop: (\d+) passed, (\d+) failed$/m.exec(output) ?? []
  return broken(code, { passed: Number(passed), failed: Number(failed) })
}

async function iceberg() {
  const failures = install()
  for (const failure of failures) console.error(`!! ${failure}`)
  const folder = await mkdtemp(join(tmpdir(), 'fencepost-interop-'))
  try {
    const report = join(folder, 'tests.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'scripts/interop/vitest.config.ts']
    const { code } = await node([...vitest, ...reporters])
    const counts = JSON.parse(await readFile(report, 'utf8').catch(() => '{}'))
    const { numPassedTests: passed = 0, numFailedTests: failed = 0 } = counts
    return broken(code, { passed, failed: failed + failures.length })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * A part that ended badly without counting a failure has failed once.
 * @param {number} code
 * @param {Counts} counts
 */
function broken(code, { passed, failed }) {
  return { passed, failed: failed === 0 && code !== 0 ? 1 : failed }
}

/**
 * @param {string[]} args
 * @returns {Promise<{ code: number, output: string }>}
 */
async function node(args) {
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const child = spawn(process.execPath, args, { cwd, stdio: ['inherit', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.on('data', (/** @type {Buffer} */ data) => {
    output += data.toString()
    // The last line of the whole is ours to say.
    process.stdout.write(data.toString().replace(/^interop: /gm, 'http: '))
  })
  const code = await new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)))
  return { code, output }
}
