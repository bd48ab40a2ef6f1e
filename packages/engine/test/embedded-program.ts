import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { stripTypes } from '../../../scripts/strip-types.mjs'
import type { EmbeddedPostgresOptions } from '../src/embedded/index.ts'

// Programs that use the embedded Postgres in processes of their own, to be killed in every way. Plain Node does not run
// TypeScript, so the few files they need are compiled to a folder of their own.

const source = fileURLToPath(new URL('../src/', import.meta.url))
const packages = fileURLToPath(new URL('../../../node_modules', import.meta.url))

const program = `
import { createInterface } from 'node:readline'
import { openEmbeddedPostgres } from './src/embedded/index.js'
const { options, before } = JSON.parse(process.argv[2])
const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n')
if (before) await import('data:text/javascript,' + encodeURIComponent(before))
try {
  const { url, directory, close } = await openEmbeddedPostgres(options)
  say({ url, directory })
  const commands = createInterface({ input: process.stdin })
  commands.on('line', async (line) => {
    if (line === 'exit') process.exit(0)
    if (line === 'return') process.stdin.destroy()
    if (line === 'throw') setTimeout(() => { throw new Error('thrown on request') })
    if (line === 'close') say(await close().then(() => ({ closed: true })))
  })
} catch (error) {
  say({ code: error.code, message: error.message })
  process.exitCode = 1
}
`

export interface Program {
  directory: string
  remove(): void
}

/** Compiles what the program needs, beside `modules`: by default the packages of this repository. */
export function compileProgram(modules = packages): Program {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'fencepost-program-')))
  chmodSync(directory, 0o755)
  const embedded = readdirSync(join(source, 'embedded'))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => join('embedded', name))
  for (const file of ['errors.ts', 'check.ts', ...embedded]) {
    const path = join(directory, 'src', dirname(file), `${basename(file, '.ts')}.js`)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, stripTypes(file, readFileSync(join(source, file), 'utf8')))
  }
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(directory, 'program.js'), program)
  symlinkSync(modules, join(directory, 'node_modules'))
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

export interface Opened {
  url?: string
  directory?: string
  code?: string
  message?: string
}

/** One process that opens the embedded Postgres, and then does what it is told. */
export interface Running {
  child: ChildProcess
  /** What came of opening. */
  opened: Promise<Opened>
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  tell(command: 'exit' | 'return' | 'throw' | 'close'): void
}

/** Runs the program. `before` is code that it runs first, for signal handlers. */
export function runProgram(
  { directory }: Program,
  options: EmbeddedPostgresOptions,
  { before, ...spawnOptions }: SpawnOptions & { before?: string } = {},
): Running {
  const child = spawn(process.execPath, [join(directory, 'program.js'), JSON.stringify({ options, before })], {
    cwd: directory,
    ...spawnOptions,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  // Both are pipes, by the line above.
  const { stdin, stdout } = child as ChildProcess & { stdin: NodeJS.WritableStream; stdout: NodeJS.ReadableStream }
  stdin.on('error', () => {}) // it was killed
  const opened = new Promise<Opened>((resolve, reject) => {
    createInterface({ input: stdout }).once('line', (line) => resolve(JSON.parse(line) as Opened))
    child.once('exit', (code, signal) => reject(new Error(`ended before it had opened: ${code ?? signal}`)))
  })
  opened.catch(() => {}) // heard about by those who wait for it
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  return { child, opened, ended, tell: (command) => stdin.write(`${command}\n`) }
}
