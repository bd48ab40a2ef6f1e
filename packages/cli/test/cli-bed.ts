import { spawn, type ChildProcess } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type Client } from '@fencepost/client'
import { afterAll, beforeAll } from 'vitest'
import { buildFolder } from '../../engine/test/build-folder.ts'
import { createTestDatabase, type TestDatabase } from '../../engine/test/database.ts'
import { program } from './built-cli.ts'

export interface RunOptions {
  env?: Record<string, string>
  cwd?: string
  /** What it reads on standard input. */
  input?: string
}

/** A command that has ended. */
export interface Ran {
  code: number | null
  stdout: string
  stderr: string
  /** Standard output as JSON, line by line. */
  lines: unknown[]
}

/** A command that runs. */
export interface Running {
  pid: number
  kill(signal: NodeJS.Signals): void
  /** The nth line of standard output, when it is there, as JSON. */
  line<T>(nth?: number): Promise<T>
  /** All that was said, when this is among it. */
  said(pattern: RegExp): Promise<string>
  ended: Promise<Ran>
}

/** The command line as it is built, in processes of their own, on a database of the test file's own. */
export interface CliBed {
  database: string
  /** A directory of the test file's own, in which the commands run. */
  directory: string
  run(args: readonly string[], options?: RunOptions): Promise<Ran>
  start(args: readonly string[], options?: RunOptions): Running
  /** `fencepost up` with the database of this file, and a client for it. */
  up(args?: readonly string[]): Promise<{ url: string; client: Client; running: Running }>
  write(name: string, content: string): string
  /** Kills what is still running. */
  stopAll(): void
}

const inherited = ['PATH', 'HOME', 'TMPDIR', 'SystemRoot']
/** Nothing of the machine that the tests run on may configure what they test. */
export const cleanEnv = Object.fromEntries(
  inherited.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])),
)

/** To be called once in a test file. What a test leaves running is killed at the end of the file. */
export function cliBed(): CliBed {
  const children: ChildProcess[] = []
  let database: TestDatabase
  let directory = ''
  beforeAll(async () => {
    await buildFolder('packages/cli')
    database = await createTestDatabase()
    directory = realpathSync(mkdtempSync(join(tmpdir(), 'fencepost-cli-')))
    chmodSync(directory, 0o755) // as root, the embedded Postgres runs as somebody else, who must get there
  })
  const stopAll = () => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
  }
  afterAll(async () => {
    stopAll()
    await database.drop()
    rmSync(directory, { recursive: true, force: true })
  })
  const start: CliBed['start'] = (args, options = {}) => {
    const child = spawn(process.execPath, [program, ...args], {
      cwd: options.cwd ?? directory,
      env: { ...cleanEnv, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin.on('error', () => {}) // it need not read what it is given
    child.stdin.end(options.input ?? '')
    children.push(child)
    return runningOf(child)
  }
  return {
    get database() {
      return database.url
    },
    get directory() {
      return directory
    },
    start,
    stopAll,
    run: (args, options) => start(args, options).ended,
    up: async (args = []) => {
      const running = start(['up', '--database', database.url, '--port', '0', '--json', ...args])
      const { url } = await running.line<{ url: string }>()
      return { url, client: createClient({ url }), running }
    },
    write: (name, content) => {
      const path = join(directory, name)
      writeFileSync(path, content)
      return path
    },
  }
}

function runningOf(child: ChildProcess): Running {
  const text = { stdout: '', stderr: '' }
  const changes = new EventEmitter().setMaxListeners(0)
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (some: string) => {
      text[name] += some
      changes.emit('change')
    })
  }
  const ended = new Promise<Ran>((resolve) => {
    child.once('close', (code) => resolve({ code, ...text, lines: linesOf(text.stdout) }))
  })
  const until = <T>(found: () => T | undefined) =>
    new Promise<T>((resolve, reject) => {
      const look = () => {
        const value = found()
        if (value === undefined) return
        changes.off('change', look)
        resolve(value)
      }
      changes.on('change', look)
      void ended.then(({ code }) => reject(new Error(`ended with ${code}: ${text.stdout}${text.stderr}`)))
      look()
    })
  return {
    pid: child.pid ?? 0,
    kill: (signal) => child.kill(signal),
    line: async <T>(nth = 0) => JSON.parse(await until(() => text.stdout.split('\n').slice(0, -1)[nth])) as T,
    said: (pattern) => until(() => (pattern.test(text.stdout + text.stderr) ? text.stdout + text.stderr : undefined)),
    ended,
  }
}

function linesOf(stdout: string): unknown[] {
  try {
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as unknown)
  } catch {
    return []
  }
}
