import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface WorkerProcess {
  name: string
  pid: number
  /** Has it give back what it runs, and waits for its end. */
  stop(): Promise<void>
  /** Ends it in the middle of whatever it is doing. */
  kill(): Promise<void>
}

const program = fileURLToPath(new URL('../dist/worker.js', import.meta.url))

/** Starts a worker process, which loads so many lines a second at most. */
export function startWorker(name: string, database: string, linesPerSecond = Infinity): WorkerProcess {
  const child = spawn(process.execPath, [program], {
    env: {
      ...process.env,
      DATABASE_URL: database,
      CARBON_WORKER: `${name}-${process.pid}`,
      CARBON_LINES_PER_SECOND: String(linesPerSecond),
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await ended
  }
  return { name, pid: child.pid ?? 0, stop: () => end('SIGTERM'), kill: () => end('SIGKILL') }
}
