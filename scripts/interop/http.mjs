// @ts-check
// Replays the OpenAPI document against a real server with schemathesis (PyPI): no 500, and no answer that the document
// does not allow. Installs it into .cache/ the first time; says loudly when it cannot.
// Ends with one line, `interop: N passed, N failed`; run by scripts/interop.mjs.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { child, defer, openEmbeddedPostgres, openEngine, operation, PermanentError } from '@fencepost/engine'
import { createToken, openServer } from '@fencepost/server'
import { z } from 'zod'

const version = '4.32.5'
const home = fileURLToPath(new URL('../../.cache/schemathesis', import.meta.url))
const program = join(home, 'bin/st')

const echo = operation('echo', { payload: z.looseObject({}), run: async ({ payload }) => payload })
const operations = [
  echo,
  operation('resize', {
    payload: z.object({ image: z.string() }),
    lock: ({ image }) => (image === '' ? undefined : image.slice(0, 100).replaceAll('\0', '')) || undefined,
    run: async ({ attempt }) => attempt.step('read', async () => 1),
  }),
  operation('failing', {
    payload: z.looseObject({}),
    run: async () => {
      throw new PermanentError('it does not work')
    },
  }),
  operation('fan', { payload: z.looseObject({}), run: async () => defer([child(echo, {}), child(echo, {})]) }),
]

if (!install()) {
  console.error(`!! schemathesis ${version} could not be installed: python3 with venv, and PyPI, are needed`)
  console.log('interop: 0 passed, 1 failed')
  process.exit(1)
}
const postgres = await openEmbeddedPostgres({ temporary: true, durable: false })
const engine = await openEngine({ database: postgres.url, operations })
const stop = new AbortController()
const working = engine.work({ concurrency: 2, signal: stop.signal })
/** @type {string[]} */
const failures = []
const note = (/** @type {object} */ fields) => void failures.push(JSON.stringify(fields))
const logger = { info() {}, warn() {}, error: note }
const server = await openServer({ engine, port: 0, rateLimitPerSecond: 1e6, rateLimitBurst: 1e6, logger })
const folder = await mkdtemp(join(tmpdir(), 'fencepost-interop-'))
try {
  const { token } = await createToken(engine.database, { name: 'interop', role: 'admin' }, undefined)
  // Some jobs for it to find; and no drain while it submits: that is a run of its own.
  for (const { name } of operations) await engine.submit(name, { image: name })
  const counts = [
    await replay('all', token, ['--exclude-path', '/events', '--exclude-path', '/drain']),
    await replay('drain', token, ['--include-path', '/drain']),
  ]
  const passed = counts.reduce((sum, one) => sum + one.passed, 0)
  const failed = counts.reduce((sum, one) => sum + one.failed, 0) + failures.length
  for (const failure of failures) console.error(`!! the server logged an error of its own: ${failure}`)
  console.log(`interop: ${passed} passed, ${failed} failed`)
  if (failed > 0 || passed === 0) process.exitCode = 1
} finally {
  await server.close()
  stop.abort()
  await working
  await engine.close()
  await postgres.close()
  await rm(folder, { recursive: true, force: true })
}

function install() {
  const there = existsSync(program) && spawnSync(program, ['--version'], { encoding: 'utf8' })
  if (there && there.stdout.includes(version)) return true
  const steps = [
    ['python3', '-m', 'venv', home],
    [join(home, 'bin/pip'), 'install', '--quiet', '--disable-pip-version-check', `schemathesis==${version}`],
  ]
  return steps.every(([command = '', ...args]) => spawnSync(command, args, { stdio: 'inherit' }).status === 0)
}

/**
 * @param {string} name
 * @param {string} token
 * @param {string[]} which
 * @returns {Promise<{ passed: number, failed: number }>}
 */
async function replay(name, token, which) {
  const report = join(folder, `${name}.xml`)
  const args = ['run', `${server.url}/openapi.json`, '--header', `Authorization: Bearer ${token}`, ...which]
  const limits = ['--max-examples', '25', '--seed', '4', '--generation-database', 'none', '--request-timeout', '10']
  const output = ['--report', 'junit', '--report-junit-path', report, '--no-color', '--warnings', 'off']
  // Whether random data can be accepted is for the operation to say, not for the document.
  const checks = ['--checks', 'all', '--exclude-checks', 'positive_data_acceptance']
  const run = spawn(program, [...args, ...limits, ...checks, ...output], { stdio: 'inherit', cwd: folder })
  const code = await new Promise((resolve) => run.on('close', resolve))
  const xml = await readFile(report, 'utf8').catch(() => '')
  const cases = (xml.match(/<testcase\b/g) ?? []).length
  const failed = (xml.match(/<(failure|error)\b/g) ?? []).length
  return { passed: Math.max(cases - failed, 0), failed: failed === 0 && code !== 0 ? 1 : failed }
}
