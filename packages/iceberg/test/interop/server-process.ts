import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** A server that is not ours, as a process of ours. */
export interface ServerProcess {
  /** What it wrote so far, for a test that wants to say why it failed. */
  readonly log: () => string
  readonly close: () => Promise<void>
}

interface ServerCommand {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Any answer at all from this address says that it is up. */
  readonly url: string
}

/** Starts it and waits until it answers. It is ended with this process, whatever happens to the test. */
export async function startServer({ name, command, args, env, url }: ServerCommand): Promise<ServerProcess> {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let log = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (log += data.toString()))
  child.once('error', (error) => (log += error.message)) // it could not even be started
  const kill = (): void => void child.kill('SIGKILL')
  process.once('exit', kill)
  const server = { log: () => log, close: async () => stop(child, kill) }
  const until = Date.now() + 60_000
  while (!(await answers(url))) {
    if (child.pid === undefined || child.exitCode !== null || Date.now() > until) {
      await server.close()
      throw new Error(`${name} did not start at ${url}; it wrote:\n${log}`)
    }
    // oxlint-disable-next-line no-restricted-globals -- a program of others gives no sign but its answer
    await new Promise((resolve) => void setTimeout(resolve, 50))
  }
  return server
}

/** A server with a folder of its own, which goes with it, also when it does not start. */
export async function startInFolder<Server extends ServerProcess>(
  name: string,
  start: (folder: string) => Promise<Server>,
): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), `fencepost-${name}-`))
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const server = await start(folder)
    const close = async (): Promise<void> => {
      await server.close()
      await remove()
    }
    return { ...server, close }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Takes what is opened for the tests of a file, and closes it after them: also when what was to follow did not open. */
export function closedAfterAll(): <Opened extends { close: () => Promise<unknown> }>(opened: Opened) => Opened {
  const all: { close: () => Promise<unknown> }[] = []
  let over = false
  afterAll(async () => {
    over = true
    const failures: unknown[] = []
    // The last first: it may use those before it.
    for (const opened of all.toReversed()) await opened.close().catch((error: unknown) => failures.push(error))
    if (failures.length > 0) throw failures[0]
  })
  return (opened) => {
    // A hook that took too long goes on opening after the tests were given up.
    if (over) void opened.close()
    else all.push(opened)
    return opened
  }
}

async function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  )
}

async function stop(child: ChildProcess, kill: () => void): Promise<void> {
  process.removeListener('exit', kill)
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  // oxlint-disable-next-line no-restricted-globals -- it is given time to end by itself
  const late = setTimeout(kill, 5000)
  await ended
  clearTimeout(late)
}

/** A port of the loopback that was free just now. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return address.port
}

/** Refuses, with what to do, when a part of scripts/interop/install.mjs is missing. */
export function requireInstalled(part: string, path: string): void {
  if (existsSync(path)) return
  throw new Error(`${path} is missing: run \`node scripts/interop/install.mjs ${part}\`, or \`npm run test:interop\``)
}
