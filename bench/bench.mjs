// @ts-check
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { help, readOptions } from './src/options.mjs'
import { writeTable } from './src/readme.mjs'
import { endRefused, Refusal } from './src/refusal.mjs'

/*
 * What `npm run bench` starts, on whatever Node is there: checks what is asked for, installs what the bench needs, builds
 * the engine, and goes on in the Node that every system is measured on. Nothing imported here comes from npm.
 */

const bench = fileURLToPath(new URL('.', import.meta.url))
const root = join(bench, '..')
const leastNode = [22, 18] // graphile-worker's

const asked = process.argv.slice(2)
try {
  const options = readOptions(asked)
  if (options.help) process.stdout.write(help)
  else if (options.table !== undefined) process.stdout.write(`Written: ${writeTable(options.table)}\n`)
  else measure()
} catch (error) {
  endRefused(error)
}

function measure() {
  if (!isInstalled()) must('npm', ['ci', '--prefix', bench, '--no-audit', '--no-fund', '--loglevel=error'])
  if (!existsSync(join(root, 'node_modules/@fencepost/engine'))) must('npm', ['ci'])
  // Quick when nothing has changed; what is measured is what is in src/.
  must('npm', ['run', '--silent', 'build'])
  const child = spawn(measuringNode(), [join(bench, 'src/main.mjs'), ...asked], { stdio: 'inherit' })
  // The child cleans up, and we end with it. A terminal sends Ctrl-C to the child as well, which takes it once.
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => child.kill(signal))
  }
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)))
}

/** True when what is installed is what the lockfile says. */
function isInstalled() {
  const packed = JSON.parse(readFileSync(join(bench, 'package-lock.json'), 'utf8')).packages
  return Object.entries(packed).every(([path, { version, optional }]) => {
    if (path === '' || optional) return true
    const file = join(bench, path, 'package.json')
    return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).version === version
  })
}

/** The pinned Node, or this one where there is none for the platform and this one is new enough. */
function measuringNode() {
  const pinned = join(bench, `node_modules/node-${process.platform}-${process.arch}/bin/node`)
  if (existsSync(pinned)) return pinned
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major > leastNode[0] || (major === leastNode[0] && minor >= leastNode[1])) return process.execPath
  throw new Refusal(
    `There is no pinned Node for ${process.platform} ${process.arch}; run this with Node 22.18 or later.`,
  )
}

function must(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) {
    process.stderr.write(`${command} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}\n`)
    process.exit(status ?? 1)
  }
}
