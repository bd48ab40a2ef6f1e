import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Folder } from './folder.ts'
import { programsUnderway } from './program.ts'
import { tagOf } from './process-tag.ts'
import type { Waiting } from './waiting.ts'

// The server is found by the file postmaster.pid that Postgres keeps in its data directory. The file outlives a server
// that was killed, and its pid may belong to somebody else by now, so the process is looked at before it is believed.

export interface Server {
  pid: number
  port: number
  ready: boolean
}

const fastStopMs = 30_000
const immediateStopMs = 5_000

/** The server of this folder, if it is running, whoever started it. */
export function findServer(folder: Folder): Server | undefined {
  const lines = readPidFile(folder)?.split('\n')
  if (!lines) return undefined
  const pid = Number(lines[0])
  // Lines: pid, data directory, start, port, socket directory, address, shared memory, status.
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isServer(pid, folder)) return undefined
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === 'ready' }
}

/**
 * Clears the way for a new server after one that was killed. Postgres does that by itself, unless the pid in its file
 * belongs to another process now, as it often does in a container. Then only the pid is made one that nobody has: the
 * rest of the file tells Postgres which shared memory to look at, to be sure that no orphan of the old server still
 * writes.
 */
export function disownStalePid(folder: Folder): void {
  const content = readPidFile(folder)
  const pid = Number(content?.split('\n')[0])
  if (content === undefined || tagOf(pid) === undefined || isServer(pid, folder)) return
  writeFileSync(pidFile(folder), content.replace(/^\d+/, '99999999'))
}

/**
 * Stops the server and waits until it has ended: first by a fast shutdown, which writes everything out; if that takes
 * too long by an immediate one, after which the next start recovers from the log. Only under the folder's lock.
 */
export function* stopServer(folder: Folder): Waiting<void> {
  yield* endPrograms(folder)
  for (const [signal, waitMs] of [
    ['SIGINT', fastStopMs],
    ['SIGQUIT', immediateStopMs],
  ] as const) {
    const server = findServer(folder)
    if (!server) return
    sendSignal(server.pid, signal)
    const deadline = performance.now() + waitMs
    while (findServer(folder)?.pid === server.pid && performance.now() < deadline) yield
  }
}

// An initdb, or a server that has not written its file yet, when this process ends in the middle of a start.
function* endPrograms(folder: Folder): Waiting<void> {
  const deadline = performance.now() + immediateStopMs
  for (const child of programsUnderway(folder)) {
    if (child.pid === undefined) continue
    // The whole group: initdb runs a postgres of its own.
    sendSignal(process.platform === 'win32' ? child.pid : -child.pid, 'SIGINT')
    while (tagOf(child.pid) !== undefined && performance.now() < deadline) yield
  }
}

function isServer(pid: number, folder: Folder): boolean {
  if (process.platform === 'win32') return tagOf(pid) !== undefined
  try {
    if (process.platform === 'linux') {
      // A server works in its data directory. Compared by identity, which is the same through every mount and link.
      const [there, here] = [statSync(`/proc/${pid}/cwd`), statSync(folder.data)]
      return there.dev === here.dev && there.ino === here.ino
    }
    const command = execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' })
    return command.includes(` -D ${folder.data} `)
  } catch {
    return false // no such process, or one of an account that this server does not run under
  }
}

// Windows has no signals: there this ends the server at once, and its next start recovers from the log.
function sendSignal(pid: number, signal: 'SIGINT' | 'SIGQUIT'): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function readPidFile(folder: Folder): string | undefined {
  try {
    return readFileSync(pidFile(folder), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function pidFile(folder: Folder): string {
  return join(folder.data, 'postmaster.pid')
}
