import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const workerProgram = fileURLToPath(new URL('./worker.js', import.meta.url))

/** Worker processes on one database. */
export class Workers {
  readonly #database: string
  readonly #program: string
  readonly #running = new Set<ChildProcess>()

  constructor(database: string, program = workerProgram) {
    this.#database = database
    this.#program = program
  }

  /** Starts one; the answer is its pid. */
  start(): number {
    const worker = fork(this.#program, {
      env: { ...process.env, DATABASE_URL: this.#database },
      // A process group of its own: Ctrl-C comes to the one that started it, who then stops it in order.
      detached: true,
      execArgv: [], // not those of whoever starts it
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    this.#running.add(worker)
    worker.once('exit', () => this.#running.delete(worker))
    return worker.pid ?? 0
  }

  get pids(): number[] {
    return [...this.#running].flatMap(({ pid }) => pid ?? [])
  }

  /** Kills one as a machine that loses its power does: it can do nothing about it. */
  async kill(pid: number): Promise<void> {
    await this.#end(
      [...this.#running].filter((worker) => worker.pid === pid),
      'SIGKILL',
    )
  }

  /** Has all of them give back what they run, and end. */
  async stop(): Promise<void> {
    await this.#end([...this.#running], 'SIGTERM')
  }

  async #end(workers: readonly ChildProcess[], signal: NodeJS.Signals): Promise<void> {
    await Promise.all(
      workers.map(async (worker) => {
        const ended = once(worker, 'exit')
        worker.kill(signal)
        await ended
      }),
    )
  }
}
