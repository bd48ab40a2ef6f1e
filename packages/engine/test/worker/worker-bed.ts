import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import type { EngineOptions, Job, JobEvent, RunWorkerOptions } from '../../src/index.ts'
import { killGroup } from '../../src/worker/isolated/process-group.ts'
import { openBed, type Bed } from '../bed.ts'
import { buildEngine, type BuiltEngine } from './built-engine.ts'
import { operations } from './programs/operations.ts'

/** A worker that is a process of its own. */
export interface WorkerProcess {
  pid: number
  kill(signal: NodeJS.Signals): void
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
  /** What it has logged. */
  output(): string
}

/** A database, an engine on it, and workers in processes of their own. */
export interface WorkerBed extends Bed {
  run(worker?: RunWorkerOptions, engine?: Partial<EngineOptions>): WorkerProcess
  /** The job when it is as it should be. */
  job(jobId: string, expected: Partial<Job>): Promise<Job>
  events(jobId: string): Promise<JobEvent[]>
  /** Where the handlers of a job run, or ran: the pids that they gave, oldest first. */
  pids(jobId: string): Promise<number[]>
  /** The pid of the handler of the nth attempt that has begun. */
  begun(jobId: string, nth?: number): Promise<number>
}

/** To be called once in a test file. What a test leaves running is killed after it. */
export function workerBed(): WorkerBed {
  let built: BuiltEngine
  let bed: Bed
  const running: ChildProcess[] = []

  beforeAll(async () => {
    built = buildEngine()
    bed = await openBed({ operations, maxConnections: 4 })
    await bed.query('create table ledger (job_id text, what text)')
  })
  afterEach(async () => {
    for (const child of running.splice(0)) child.kill('SIGKILL')
    const begun = await bed.query<{ pid: number }>(
      `select (fields ->> 'pid')::integer as pid from fencepost.job_events where event like '%.begun'`,
    )
    for (const { pid } of begun) killLeftover(pid, built.directory)
    await bed.query('delete from ledger')
    await bed.reset()
  })
  afterAll(async () => {
    await bed.close()
    built.remove()
  })

  const events = (jobId: string) => bed.engine.events(jobId)
  const pids = async (jobId: string) =>
    (await events(jobId))
      .filter(({ event }) => event.endsWith('.begun'))
      .map(({ fields }) => (fields as { pid: number }).pid)
  const more = {
    run: (worker: RunWorkerOptions = {}, engine: Partial<EngineOptions> = {}): WorkerProcess => {
      const child = spawn(
        process.execPath,
        [join(built.directory, 'programs/worker.js'), JSON.stringify({ worker: { pollMs: 500, ...worker }, engine })],
        { cwd: built.directory, env: { ...process.env, DATABASE_URL: bed.url }, stdio: ['ignore', 'pipe', 'pipe'] },
      )
      running.push(child)
      return workerProcess(child)
    },
    job: async (jobId: string, expected: Partial<Job>): Promise<Job> => {
      await expect.poll(() => bed.engine.get(jobId), { timeout: 15_000 }).toMatchObject(expected)
      return (await bed.engine.get(jobId)) as Job
    },
    events,
    pids,
    begun: async (jobId: string, nth = 1): Promise<number> => {
      await expect.poll(() => pids(jobId), { timeout: 15_000 }).toHaveLength(nth)
      return (await pids(jobId)).at(-1) as number
    },
  }
  // The bed is there only when the tests run.
  return new Proxy(more as WorkerBed, {
    get: (target, name) => Reflect.get(name in target ? target : bed, name) as unknown,
  })
}

function workerProcess(child: ChildProcess): WorkerProcess {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  return { pid: child.pid ?? 0, kill: (signal) => child.kill(signal), ended, output: () => output }
}

// Handler processes end with their worker, unless that is just what a test, or a mutant, has found to be broken.
function killLeftover(pid: number, directory: string): void {
  const commandLine = `/proc/${pid}/cmdline`
  const ours =
    existsSync(commandLine) && readFileSync(commandLine, 'utf8').includes(`${directory}/dist/worker/isolated`)
  if (ours && isAlive(pid)) killGroup(pid)
}

/** Whether a process is there; one that has ended and was not yet collected by its parent is not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const stat = `/proc/${pid}/stat`
  return !existsSync(stat) || !/\) [ZX] /.test(readFileSync(stat, 'utf8'))
}

/** Resolves when the process is gone. */
export async function expectGone(pid: number, timeout = 5_000): Promise<void> {
  await expect.poll(() => isAlive(pid), { timeout, interval: 20 }).toBe(false)
}
