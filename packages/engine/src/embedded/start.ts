import { closeSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { locateBinaries, prepareBinaries, type Binaries } from './binaries.ts'
import { ensureData } from './data-directory.ts'
import { programFailure } from './failure.ts'
import type { Folder } from './folder.ts'
import { letGo, startProgram } from './program.ts'
import { disownStalePid, findServer, type Server } from './server.ts'
import { openLog, readLog } from './server-log.ts'
import { settingArguments, type Settings } from './settings.ts'

export interface StartOptions {
  durable: boolean
  settings: Settings
  startTimeoutMs: number
}

const lookAgainMs = 20

// Reasons to end that pass by themselves: somebody took the port first, the orphans of a killed server have not ended
// yet, or a server that a killed process had just begun is coming up.
const passing =
  /could not bind|could not create any TCP\/IP sockets|shared memory block .* is still in use|lock file ".*" already exists/

/** The running server of the folder, joined or started. Only under the folder's lock. */
export async function ensureServer(folder: Folder, options: StartOptions): Promise<Server> {
  const deadline = performance.now() + options.startTimeoutMs
  let binaries: Binaries | undefined
  let output = ''
  while (performance.now() < deadline) {
    const running = findServer(folder)
    if (running?.ready) return running
    if (!running) {
      binaries ??= await prepareData(folder, options)
      const ended = await launch(folder, binaries, options, deadline)
      if (ended === undefined) continue
      output = ended
      if (!passing.test(output)) throw programFailure('postgres', folder.path, output, explain('ended', folder))
    }
    await pause(lookAgainMs)
  }
  const late = `was not ready after ${options.startTimeoutMs} ms`
  throw programFailure('postgres', folder.path, output || readLog(folder), explain(late, folder))
}

async function prepareData(folder: Folder, { durable }: StartOptions): Promise<Binaries> {
  const native = locateBinaries({ platform: process.platform, arch: process.arch, from: import.meta.url })
  const binaries = await prepareBinaries(native, folder)
  await ensureData(folder, binaries, durable)
  return binaries
}

/** Starts a server. Returns undefined when it is ready or time is up, and what it said when it has ended. */
async function launch(
  folder: Folder,
  binaries: Binaries,
  { durable, settings }: StartOptions,
  deadline: number,
): Promise<string | undefined> {
  const port = await freePort()
  disownStalePid(folder)
  const log = openLog(folder)
  const args = ['-D', folder.data, ...settingArguments(port, durable, settings)]
  const child = startProgram(binaries.postgres, args, folder, log.descriptor)
  closeSync(log.descriptor)
  child.unref() // what we wait for keeps this process running; afterwards the server must not
  let ended = false
  let failure: Error | undefined
  child.once('exit', () => (ended = true))
  child.once('error', (error) => (failure = error))
  while (performance.now() < deadline) {
    if (failure) throw failure
    if (ended) return readLog(folder, log.begin)
    const server = findServer(folder)
    if (server?.ready && server.pid === child.pid) {
      letGo(child)
      return undefined
    }
    await pause(lookAgainMs)
  }
  return undefined
}

// Somebody may take the port before Postgres does; then the start is repeated with another.
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

function explain(what: string, folder: Folder): string {
  return `${what}. Its log, ${folder.log}, says last:`
}
